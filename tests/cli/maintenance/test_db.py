"""The commands about the store itself."""

import json

import psycopg
import pytest

from profsvc import store
from tests.cli.conftest import Call
from tests.environment.postgres import Server


@pytest.fixture
def empty(postgres_server: Server) -> str:
    """A database without any table."""
    return postgres_server.database()


def test_a_server_is_brought_up_only_when_asked(cli: Call, postgres_server: Server, empty: str) -> None:
    url = postgres_server.url(empty).render_as_string(hide_password=False)
    refused = cli("--store", url, "runs")
    assert refused.code == 5
    assert "profsvc --store 'postgresql://" in refused.err
    assert refused.err.rstrip().endswith(" db upgrade")
    assert f":{postgres_server.url(empty).password}@" not in refused.err
    assert cli("--store", url, "db", "current").out == f"store empty, program {store.latest_revision()}\n"
    assert cli("--store", url, "db", "upgrade").code == 0
    assert (
        cli("--store", url, "db", "current").out
        == f"store {store.latest_revision()}, program {store.latest_revision()}\n"
    )
    assert cli("--store", url, "runs").code == 0
    assert postgres_server.left(empty) == []


def test_a_reader_is_made_and_told_how_to_come_in(cli: Call, postgres_server: Server, postgres_url: str) -> None:
    admin = postgres_server.admin.set(database=store.connect(postgres_url).url.database)
    url, name = admin.render_as_string(hide_password=False), f"reader_of_{admin.database}"
    try:
        made = cli("--store", url, "db", "create-reader", name)
        assert (made.code, made.out.count("\n")) == (0, 1)
        assert "not stored or shown again" in made.err
        assert "It still has access" not in made.err
        with psycopg.connect(made.out.strip()) as session:
            assert session.execute("SELECT count(*) FROM v1_runs").fetchone() == (0,)
        again = cli("--store", url, "db", "create-reader", name)
        assert "its password is unchanged" in again.err
        assert again.out != made.out
        row = json.loads(cli("--store", url, "db", "create-reader", name, "--json").out)
        assert row == {"ok": True, "name": name, "url": again.out.strip(), "new_password": False}
    finally:
        with postgres_server.session(admin.database) as session:
            session.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_file_has_no_readers(cli: Call) -> None:
    refused = cli("db", "create-reader", "me")
    assert refused.code == 2
    assert "profsvc db backup FILE" in refused.err
