"""Migrate the schema of a store to that of this program."""

import filecmp
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from sqlalchemy import inspect
from sqlalchemy.exc import DBAPIError

from profsvc.errors import StoreVersionError
from profsvc.store.connection import postgres
from profsvc.store.connection.engine import set_journal
from profsvc.store.connection.errors import translate_errors
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import WRITE_OPTION, exclusive_writer, reading, writing
from profsvc.store.connection.urls import address, file_of
from profsvc.store.ingest.inserts.dictionaries import Names
from profsvc.store.maintenance.readiness import (
    SOURCES_FACT,
    known_sources,
    latest_revision,
    migrations_folder,
    revisions,
    schema_revision,
    schema_state,
    stored_digest,
    stored_sources,
)
from profsvc.store.sandbox.loader_role import grant_loading
from profsvc.store.sandbox.reader_role import grant_views
from profsvc.store.schema.catalog import COLUMNS_FACT, VIEWS, comment_statements
from profsvc.store.schema.digest import counter_meanings, view_statements, views_digest
from profsvc.store.schema.sources import are_as_imported

SCHEMA_LOCK = 0x70726F66
"""The advisory lock of a database, on Postgres, that a process holds while it changes the schema."""
_UNCHECKED = """
    SELECT quote_ident(c.relname), quote_ident(o.conname) FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid
    WHERE NOT o.convalidated AND c.relnamespace = CAST(current_schema() AS regnamespace) ORDER BY 1, 2
"""


def upgrade(
    engine: Engine,
    counters: Iterable[str] | None = None,
    place: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> str:
    """Migrate the store to the schema and views of this program; return the revision.

    A SQLite file with an older schema is copied first, to ``<file>.before-<new revision>``. Long steps report their
    progress by ``tell``, and a migrated file its copy: older programs refuse the file from then on.
    """
    if schema_state(engine, place) != "current":
        from profsvc.store.maintenance.backfill import reporting_progress  # needs Alembic

        with (
            exclusive_writer(engine),
            reporting_progress(tell),
        ):  # check again, because another process may have been first
            _upgrade_schema(engine, schema_state(engine, place), place, tell)
    refresh_views(engine, counters)
    return latest_revision(place)


def _upgrade_schema(engine: Engine, found: str, place: Path | None, tell: Callable[[str], None] | None = None) -> None:
    """Migrate a store that was ``found`` new, old or current to the schema of this program."""
    said = ""
    if found == "old" and (file := file_of(engine)) is not None:
        old, new = schema_revision(engine), latest_revision(place)
        said = f"{file}: migrated from schema {old} to {new}; as it was before: {_copy(engine, new)}"
    if found == "new":
        set_journal(engine)
    if found != "current":
        if found == "old" and file_of(engine) is None:
            _fill_in(engine, place or migrations_folder())
        _migrate(engine, place or migrations_folder(), "head")
        if file_of(engine) is None:
            _check_rows(engine)
    if tell and said:
        tell(said)


def _fill_in(engine: Engine, place: Path) -> None:
    """Run the backfills of the next migrations while other processes work, each after the migrations before it."""
    from alembic.script import ScriptDirectory

    from profsvc.store.maintenance.backfill import fill_ahead

    script = ScriptDirectory(str(place))
    waiting = [revision for revision in revisions(place) if revision > (schema_revision(engine) or "")]
    for migration in map(script.get_revision, waiting):
        if fill := getattr(migration.module, "FILL", None):
            if schema_revision(engine) != migration.down_revision:
                _migrate(engine, place, str(migration.down_revision))
            fill_ahead(engine, fill)


def _migrate(engine: Engine, place: Path, revision: str) -> None:
    def migrate() -> None:
        with changing_schema(engine) as connection:
            _run_migrations(connection, place, revision)

    postgres.retry(engine, migrate)


def _check_rows(engine: Engine) -> None:
    """Validate constraints that migrations created without a check, because that may take long, during other work."""
    with reading(engine) as connection:
        unchecked = connection.exec_driver_sql(_UNCHECKED).all()

    def check(table: str, constraint: str) -> None:
        with writing(engine) as connection:
            postgres.lock_tables(connection, "facts")
            connection.exec_driver_sql(f"ALTER TABLE {table} VALIDATE CONSTRAINT {constraint}")

    for table, constraint in unchecked:
        postgres.retry(engine, partial(check, table, constraint))


def _copy(engine: Engine, revision: str) -> Path:
    """Copy a SQLite store to a free name in its folder, unless an upgrade that was stopped left the same copy."""
    from profsvc.store.maintenance.backup import writing_to

    file = file_of(engine)
    names = (Path(f"{file}.before-{revision}" + (f"-{n}" if n > 1 else "")) for n in range(1, 1000))
    earlier = list(takewhile(Path.exists, names))
    target = Path(f"{file}.before-{revision}" + (f"-{len(earlier) + 1}" if earlier else ""))
    with writing_to(target) as part, translate_errors(engine), engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        driver.execute("VACUUM INTO ?", (str(part),))
    if same := next((copy for copy in earlier if filecmp.cmp(copy, target, shallow=False)), None):
        target.unlink()
        return same
    return target


@contextmanager
def changing_schema(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in a transaction that may change tables; the views are dropped until `refresh_views`.

    SQLite changes a table by copying it to a new one, and dropping the old one would cascade to the rows that refer to
    it. So foreign keys are disabled, which only works outside a transaction, and are checked at the end.
    """
    sqlite = engine.dialect.name == "sqlite"
    with translate_errors(engine), engine.execution_options(**{WRITE_OPTION: True}).connect() as connection:
        if sqlite:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA foreign_keys = OFF")
        with connection.begin():
            if not sqlite:  # an empty database lacks the tables whose locks a second process would wait for
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")
                postgres.lock_tables(connection, "uploads", "facts")
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
    """Drop all views of profsvc, including those that this program no longer has."""
    found = inspect(connection)
    for view in found.get_view_names():
        if view.startswith("v1_"):
            connection.exec_driver_sql(f'DROP VIEW "{view}"')
    if found.has_table("facts"):
        connection.execute(text(f"DELETE FROM facts WHERE name IN ('views', '{COLUMNS_FACT}', '{SOURCES_FACT}')"))


def refresh_views(engine: Engine, counters: Iterable[str] | None = None) -> None:
    """Create the views of this program if the store has others."""
    meanings = counter_meanings(counters)
    wanted = views_digest(engine.dialect.name, meanings)
    # Another version may have been installed while this process ran, and lie in the files.
    sources = known_sources(wanted) if counters is None and are_as_imported() else ""
    with reading(engine) as connection:
        is_made = stored_digest(connection) == wanted
        is_known = not sources or stored_sources(connection) == sources
    if not is_made:
        postgres.retry(engine, lambda: _make_views(engine, dict(meanings), wanted, sources))
    elif not is_known:
        with writing(engine) as connection:
            _keep_sources(connection, sources)


def check_views(connection: Connection) -> None:
    """Raise `StoreVersionError` if a view fails, because SQLite creates views of missing tables."""
    for view in VIEWS:
        try:
            connection.exec_driver_sql(f"SELECT * FROM {view} LIMIT 0")
        except DBAPIError as error:
            raise StoreVersionError(
                f"{address(connection.engine)} says that its schema is {latest_revision()}, but {view} does not answer "
                f"({' '.join(str(error.orig).split())}): it was made or changed by something else than the profsvc of "
                "its schema; restore it from a backup, or give a new --store and upload the files again"
            ) from None


def _make_views(engine: Engine, meanings: Mapping[str, str], wanted: str, sources: str) -> None:
    with writing(engine) as connection:
        if file_of(engine) is None:
            postgres.lock_tables(connection, "facts")
            if stored_digest(connection) == wanted:
                return
        drop_views(connection)
        numbers = Names(connection, "texts").numbers([(name,) for name in meanings])
        for statement in view_statements(engine.dialect.name, dict(zip(meanings, numbers, strict=True)), meanings):
            _run(connection, statement)
        if file_of(engine) is None:
            _run(connection, ";\n".join(comment_statements(meanings)))
            grant_views(connection)
            grant_loading(connection)
        check_views(connection)
        connection.execute(text("INSERT INTO facts (name, value) VALUES ('views', :wanted)"), {"wanted": wanted})
        if sources:
            _keep_sources(connection, sources)


def _keep_sources(connection: Connection, sources: str) -> None:
    values = {"name": SOURCES_FACT, "value": sources}
    connection.execute(text("DELETE FROM facts WHERE name = :name"), {"name": SOURCES_FACT})
    connection.execute(text("INSERT INTO facts (name, value) VALUES (:name, :value)"), values)


def _run(connection: Connection, statement: str) -> None:
    """Run a statement literally, without replacing percent signs."""
    driver: Any = connection.connection.driver_connection
    driver.execute(statement)
