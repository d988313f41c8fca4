"""The store on the oldest and the newest Postgres of this machine, beside the one that the package for tests brings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import postgres

HERE = Path(__file__).parents[1]
INSTALLED = postgres.installed()
# What differs from one server to the next: the tree that it makes of a query, the rights of roles, its catalogs. The
# schema is migrated on each for every test of these.
TESTS = (
    "sandbox/test_user_query.py",
    "sandbox/test_postgres.py",
    "sandbox/test_reader_role.py",
    "maintenance/test_migrations.py::test_metadata_and_migrations_agree",
    "maintenance/test_migrations.py::test_rows_of_results_are_written_without_looking_up_what_they_name",
    "maintenance/test_migrations.py::test_texts_compare_byte_by_byte",
    "maintenance/test_migrations.py::test_an_upgrade_by_a_superuser_leaves_the_store_to_its_owner",
    "maintenance/test_migrations.py::test_what_an_older_schema_held_keeps_every_value",
    "queries/test_questions.py",
)
ENDS = sorted({min(INSTALLED), max(INSTALLED)} - {postgres.packaged()}) if INSTALLED else []


@pytest.mark.skipif(bool(os.environ.get("PROFSVC_TEST_POSTGRES")), reason="PROFSVC_TEST_POSTGRES names the server")
@pytest.mark.skipif(not ENDS, reason="no other server lies in /usr/lib/postgresql: apt-get install postgresql-15")
@pytest.mark.parametrize("version", ENDS)
def test_the_store_works_on(version: int, shared_folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "postgresql or on_both", "--tb=short"]
    command += [str(HERE / test) for test in TESTS]
    with postgres.installed_server(INSTALLED[version]) as url:
        # What was stored and analysed before is not once more.
        environment = os.environ | {"PROFSVC_TEST_POSTGRES": url, "PROFSVC_TEST_SHARED": str(shared_folder)}
        environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
        done = subprocess.run(command, cwd=HERE.parents[1], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
