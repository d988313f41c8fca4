import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.maintenance import migrations, readiness
from profsvc.store.schema import digest, sources

# What is read and imported until the SQL of the views is there.
MADE = """
import json, sys
opened = set()
sys.addaudithook(lambda event, given: opened.add(str(given[0])) if event == "open" else None)
from profsvc.store.schema import digest
digest.views_digest("sqlite", digest.counter_meanings(None))
digest.views_digest("postgresql", digest.counter_meanings(None))
imported = [module.__file__ for name, module in sys.modules.items() if name.startswith("profsvc")]
print(json.dumps([*imported, *(name for name in opened if "/data/" in name)]))
"""
# Packages that only import others, and errors.
WITHOUT_VIEWS = {"__init__.py", "errors.py", "specs/__init__.py", "specs/metrics/__init__.py", "store/__init__.py",
                 "tables/__init__.py"}  # fmt: skip


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """A store with the views of the program, without counters of its own."""
    engine = store.connect(url)
    migrations.upgrade(engine)
    yield engine
    engine.dispose()


def test_the_files_are_all_that_decide_the_views() -> None:
    done = subprocess.run([sys.executable, "-c", MADE], cwd=sources.PACKAGE.parent, capture_output=True, check=True)
    used = {Path(name) for name in json.loads(done.stdout)}
    inside = {path.relative_to(sources.PACKAGE).as_posix() for path in used if sources.PACKAGE in path.parents}
    known = {path.relative_to(sources.PACKAGE).as_posix() for path in sources.files()}
    assert inside - known == WITHOUT_VIEWS
    assert not {name for name in known if not name.startswith("store/schema/")} - inside


def test_a_changed_or_missing_file_changes_the_fingerprint(tmp_path: Path) -> None:
    (file := tmp_path / "views.py").write_text("a")
    before = sources.fingerprint([file])
    file.write_text("b")
    assert sources.fingerprint([file]) != before != ""
    assert sources.fingerprint([file, tmp_path / "none.py"]) == ""
    assert sources.are_as_imported()


def test_a_store_knows_where_its_views_come_from(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "views_digest", None)
    assert readiness.is_ready(engine)
    with writing(engine) as connection:  # as a program does that does not know of the files
        connection.execute(text("UPDATE facts SET value = 'others' WHERE name = 'views'"))
    with pytest.raises(TypeError):
        readiness.is_ready(engine)


def test_other_files_with_the_same_views_are_kept_by_an_upgrade(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "SOURCES", "others")
    assert readiness.is_ready(engine)
    with reading(engine) as connection:
        before = readiness.stored_sources(connection)
    migrations.upgrade(engine)
    with reading(engine) as connection:
        assert readiness.stored_sources(connection) == f"{readiness.stored_digest(connection)} others" != before


@pytest.mark.parametrize("others", [{"counters": ["duration_ns"]}, {}])
def test_only_the_views_of_the_files_that_were_imported_are_known(
    tmp_path: Path, others: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not others:  # another version was installed since
        monkeypatch.setattr(sources, "SOURCES", "before")
    engine = store.connect(str(tmp_path / "store.sqlite"))
    migrations.upgrade(engine, **others)
    with reading(engine) as connection:
        assert readiness.stored_sources(connection) is None
    assert readiness.is_ready(engine, **others)
    engine.dispose()


def test_without_sources_the_views_are_made(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "SOURCES", "")
    assert readiness.is_ready(engine)
    with writing(engine) as connection:
        connection.execute(text("UPDATE facts SET value = 'others' WHERE name = 'views'"))
    assert not readiness.is_ready(engine)
