"""Bring the schema of a store to that of this program, and say which it is."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from profsvc.errors import ServiceError, StoreVersionError
from profsvc.store import server
from profsvc.store.engine import (
    WRITE,
    address,
    file_of,
    has_journal,
    one_state,
    plain_errors,
    reading,
    set_journal,
    turn,
    writing,
)
from profsvc.store.names import Names
from profsvc.store.reader_role import grant
from profsvc.store.rights import own
from profsvc.store.views import VIEWS, check_counters, comments, sql_of

_UNCHECKED = """
    SELECT quote_ident(c.relname), quote_ident(o.conname) FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid
    WHERE NOT o.convalidated AND c.relnamespace = CAST(current_schema() AS regnamespace) ORDER BY 1, 2
"""


def folder(package: Path | None = None) -> Path:
    """Return the folder of the migrations: inside the installed package, or at the top of a checkout."""
    package = package or Path(__file__).parent.parent
    for place in (package / "migrations", package.parent / "migrations"):
        if (place / "env.py").is_file():
            return place
    raise ServiceError(f"no migrations lie in {package} nor beside it; install profsvc again")


def revisions(place: Path | None = None) -> list[str]:
    """Return every revision this program knows, oldest first.

    They are the numbers that the files begin with, so that the usual start, with nothing to do, need not load Alembic.
    """
    return sorted(path.name.split("_")[0] for path in ((place or folder()) / "versions").glob("[0-9]*.py"))


def head(place: Path | None = None) -> str:
    """Return the revision of this program's schema."""
    return revisions(place)[-1]


def current(engine: Engine) -> str | None:
    """Return the revision of the store's schema, None for an empty database."""
    with reading(engine) as connection:
        if file_of(engine) is None:
            server.check(connection, address(engine))
        tables = inspect(connection).get_table_names()
        if "alembic_version" in tables:
            revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
            return None if revision is None else str(revision)
    if tables:
        raise ServiceError(
            f"{address(engine)} belongs to another program: it has the table {tables[0]!r}; give another --store"
        )
    return None


def state(engine: Engine, place: Path | None = None) -> str:
    """Tell whether the store is ``new``, ``old`` or ``current``; raise `StoreVersionError` if it is newer than that."""
    found, known = current(engine), revisions(place)
    if found is not None and found not in known:
        raise StoreVersionError(
            f"{address(engine)} has schema {found}, but this profsvc knows only "
            f"{known[0]} to {known[-1]}; install the newer profsvc that wrote it, or give another --store"
        )
    return "new" if found is None else "current" if found == known[-1] else "old"


@one_state
def is_ready(engine: Engine, counters: Iterable[str] | None = None) -> bool:
    """Tell over one connection whether nothing is to be done to open a store: it has our schema, views and journal."""
    if state(engine) != "current":
        return False
    with reading(engine) as connection:
        made = _views(connection) == _digest(engine.dialect.name, _meanings(counters))
        return made and (file_of(engine) is None or has_journal(connection))


def is_current(engine: Engine) -> bool:
    """Tell whether there is a store, with the schema and the views of this program; nothing is made or changed."""
    file = file_of(engine)
    return (file is None or file.exists()) and is_ready(engine)


def upgrade(
    engine: Engine,
    counters: Iterable[str] | None = None,
    place: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> str:
    """Bring the store to this program's schema and views; return the revision.

    A SQLite file of an older schema is copied first, to ``<file>.before-<new revision>``. What takes long says by
    ``tell`` how far it is.
    """
    if state(engine, place) != "current":
        from profsvc.store.backfill import telling  # needs Alembic

        with turn(engine), telling(tell):  # and then look again: another process may have had its turn first
            _bring(engine, state(engine, place), place)
    refresh_views(engine, counters)
    return head(place)


def _bring(engine: Engine, found: str, place: Path | None) -> None:
    """Bring a store that was ``found`` new, old or current to this program's schema."""
    if found == "old" and file_of(engine) is not None:
        _copy(engine, head(place))
    if found == "new":
        set_journal(engine)
    if found != "current":
        if found == "old" and file_of(engine) is None:
            _fill_in(engine, place or folder())
        _migrate(engine, place or folder(), "head")
        if file_of(engine) is None:
            _check_rows(engine)


def _fill_in(engine: Engine, place: Path) -> None:
    """Do what the next migrations would do to every row, while others work; each after the migrations before it."""
    from alembic.script import ScriptDirectory

    from profsvc.store.backfill import ahead

    script = ScriptDirectory(str(place))
    waiting = [revision for revision in revisions(place) if revision > (current(engine) or "")]
    for migration in map(script.get_revision, waiting):
        if fill := getattr(migration.module, "FILL", None):
            if current(engine) != migration.down_revision:
                _migrate(engine, place, str(migration.down_revision))
            ahead(engine, fill)


def _migrate(engine: Engine, place: Path, revision: str) -> None:
    def migrate() -> None:
        with changing_schema(engine) as connection:
            _run_migrations(connection, place, revision)

    server.repeated(engine, migrate)


def _check_rows(engine: Engine) -> None:
    """Check the rows against constraints that migrations made without, as that may take long: others work meanwhile."""
    with reading(engine) as connection:
        unchecked = connection.exec_driver_sql(_UNCHECKED).all()

    def check(table: str, constraint: str) -> None:
        with writing(engine) as connection:
            server.alone(connection, "facts")
            connection.exec_driver_sql(f"ALTER TABLE {table} VALIDATE CONSTRAINT {constraint}")

    for table, constraint in unchecked:
        server.repeated(engine, partial(check, table, constraint))


def _copy(engine: Engine, revision: str) -> Path:
    """Copy a SQLite store beside itself, under a name that is free."""
    file = file_of(engine)
    names = (f"{file}.before-{revision}" + (f"-{n}" if n > 1 else "") for n in range(1, 1000))
    target = next(path for path in map(Path, names) if not path.exists())
    own(target)
    with plain_errors(engine), engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        driver.execute("VACUUM INTO ?", (str(target),))
    return target


@contextmanager
def changing_schema(engine: Engine) -> Iterator[Connection]:
    """Give a connection in a transaction that may change tables: the views are gone until `refresh_views`.

    SQLite changes a table by making it anew; dropping the old one would cascade to the rows that refer to it. So
    foreign keys are off meanwhile, which only works outside a transaction, and are checked at the end.
    """
    sqlite = engine.dialect.name == "sqlite"
    with plain_errors(engine), engine.execution_options(**{WRITE: True}).connect() as connection:
        if sqlite:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA foreign_keys = OFF")
        with connection.begin():
            if not sqlite:
                server.alone(connection, "uploads", "facts")
            drop_views(connection)
            yield connection
            if sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first()):
                raise StoreVersionError(f"the upgrade would lose rows of {broken[0]!r}; nothing was changed")


def _run_migrations(connection: Connection, place: Path, revision: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(place).replace("%", "%%"))
    command.upgrade(config, revision)


def drop_views(connection: Connection) -> None:
    """Drop every view of ours, also one that this program no longer has."""
    found = inspect(connection)
    for view in found.get_view_names():
        if view.startswith("v1_"):
            connection.exec_driver_sql(f'DROP VIEW "{view}"')
    if found.has_table("facts"):
        connection.execute(text("DELETE FROM facts WHERE name = 'views'"))


def refresh_views(engine: Engine, counters: Iterable[str] | None = None) -> None:
    """Make the views of this program if the store has others."""
    meanings = _meanings(counters)
    wanted = _digest(engine.dialect.name, meanings)
    with reading(engine) as connection:
        if _views(connection) == wanted:
            return
    server.repeated(engine, lambda: _make_views(engine, dict(meanings), wanted))


def check_views(connection: Connection) -> None:
    """Raise `StoreVersionError` if a view does not answer: SQLite makes views of tables that are not there."""
    for view in VIEWS:
        try:
            connection.exec_driver_sql(f"SELECT * FROM {view} LIMIT 0")
        except DBAPIError as error:
            raise StoreVersionError(
                f"{address(connection.engine)} says that its schema is {head()}, but {view} does not answer "
                f"({' '.join(str(error.orig).split())}): it was made or changed by something else than the profsvc of "
                "its schema; restore it from a backup, or give a new --store and upload the files again"
            ) from None


def _meanings(counters: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """Return every counter of the views with what it means, by default those of the program."""
    from profsvc import specs

    known = specs.counters()
    names = check_counters(known if counters is None else counters)
    return tuple((name, known[name].meaning if name in known else "a counter") for name in names)


def _make_views(engine: Engine, meanings: Mapping[str, str], wanted: str) -> None:
    with writing(engine) as connection:
        if file_of(engine) is None:
            server.alone(connection, "facts")
            if _views(connection) == wanted:
                return
        drop_views(connection)
        numbers = Names(connection, "texts").numbers([(name,) for name in meanings])
        for statement in _statements(engine.dialect.name, dict(zip(meanings, numbers, strict=True)), meanings):
            _run(connection, statement)
        if file_of(engine) is None:
            _run(connection, ";\n".join(comments(meanings)))
            grant(connection)
        check_views(connection)
        connection.execute(text("INSERT INTO facts (name, value) VALUES ('views', :wanted)"), {"wanted": wanted})


def _views(connection: Connection) -> str | None:
    return connection.execute(text("SELECT value FROM facts WHERE name = 'views'")).scalar()


def _statements(dialect: str, counters: Mapping[str, int], meanings: Mapping[str, str]) -> list[str]:
    return [sql_of(view, dialect, counters, meanings) for view in VIEWS]


@cache
def _digest(dialect: str, meanings: tuple[tuple[str, str], ...]) -> str:
    """Return what tells the views of this program from those of another, whatever the numbers of the counters."""
    named = dict(meanings)
    return hashlib.sha256("\n".join(_statements(dialect, dict.fromkeys(named, 0), named)).encode()).hexdigest()


def _run(connection: Connection, statement: str) -> None:
    """Run a statement as it is: a per cent sign in it is one."""
    driver: Any = connection.connection.driver_connection
    driver.execute(statement)
