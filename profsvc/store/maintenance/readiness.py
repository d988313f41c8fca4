"""Whether a store has the schema and the views of this program; nothing is changed here.

A usual start, without a migration, needs no more than this module.
"""

from collections.abc import Iterable
from pathlib import Path

from profsvc.errors import ServiceError, StoreVersionError
from profsvc.store.connection import postgres
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.sqlite_file import has_journal
from profsvc.store.connection.transactions import reading, snapshot
from profsvc.store.connection.urls import address, file_of
from profsvc.store.schema.sources import SOURCES

SOURCES_FACT = "sources"
"""The name of the row of ``facts`` that says which files the views come from."""


def migrations_folder(package: Path | None = None) -> Path:
    """Return the folder of the migrations: inside the installed package, or at the top of a checkout."""
    package = package or Path(__file__).parents[2]
    for place in (package / "migrations", package.parent / "migrations"):
        if (place / "env.py").is_file():
            return place
    raise ServiceError(f"no migrations lie in {package} nor beside it; install profsvc again")


def revisions(place: Path | None = None) -> list[str]:
    """Return all revisions of this program, oldest first.

    They come from the file names, so that a usual start, without a migration, does not load Alembic.
    """
    return sorted(path.name.split("_")[0] for path in ((place or migrations_folder()) / "versions").glob("[0-9]*.py"))


def latest_revision(place: Path | None = None) -> str:
    """Return the revision of this program's schema."""
    return revisions(place)[-1]


def table_names(connection: Connection) -> list[str]:
    """Return the names of the tables of a store."""
    if connection.dialect.name == "sqlite":
        query = text("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        return [name for name in connection.execute(query).scalars() if not name.startswith("sqlite_")]
    from sqlalchemy import inspect

    return inspect(connection).get_table_names()


def schema_revision(engine: Engine) -> str | None:
    """Return the revision of the store's schema, None for an empty database."""
    with reading(engine) as connection:
        if file_of(engine) is None:
            postgres.require_supported_server(connection, address(engine))
        tables = table_names(connection)
        if "alembic_version" in tables:
            revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
            return None if revision is None else str(revision)
    if tables:
        raise ServiceError(
            f"{address(engine)} belongs to another program: it has the table {tables[0]!r}; give another --store"
        )
    return None


def schema_state(engine: Engine, place: Path | None = None) -> str:
    """Return whether the store is ``new``, ``old`` or ``current``; raise `StoreVersionError` if it is newer."""
    found, known = schema_revision(engine), revisions(place)
    if found is not None and found not in known:
        raise StoreVersionError(
            f"{address(engine)} has schema {found}, but this profsvc knows only "
            f"{known[0]} to {known[-1]}; install the newer profsvc that wrote it, or give another --store"
        )
    return "new" if found is None else "current" if found == known[-1] else "old"


@snapshot
def is_ready(engine: Engine, counters: Iterable[str] | None = None) -> bool:
    """Return whether a store has the current schema, views and journal, using one connection."""
    if schema_state(engine) != "current":
        return False
    with reading(engine) as connection:
        return has_views(connection, counters) and (file_of(engine) is None or has_journal(connection))


def is_current(engine: Engine) -> bool:
    """Return whether a store exists with the schema and views of this program; nothing is created or changed."""
    file = file_of(engine)
    return (file is None or file.exists()) and is_ready(engine)


def has_views(connection: Connection, counters: Iterable[str] | None) -> bool:
    """Return whether a store has the views of this program.

    The SQL of the views is only made if the store does not know that they come from the files of this program.
    """
    digest = stored_digest(connection) or ""
    if counters is None and SOURCES and stored_sources(connection) == known_sources(digest):
        return True
    from profsvc.store.schema.digest import counter_meanings, views_digest

    return bool(digest == views_digest(connection.dialect.name, counter_meanings(counters)))


def known_sources(digest: str) -> str:
    """Return what a store keeps of the files that its views come from.

    The fingerprint of the views stands there too: a program that does not know of this row changes only the views.
    """
    return f"{digest} {SOURCES}"


def stored_digest(connection: Connection) -> str | None:
    """Return the fingerprint of the views that a store has; None where it has none."""
    return connection.execute(text("SELECT value FROM facts WHERE name = 'views'")).scalar()


def stored_sources(connection: Connection) -> str | None:
    """Return what a store keeps of the files that its views come from; None where it keeps nothing."""
    return connection.execute(text(f"SELECT value FROM facts WHERE name = '{SOURCES_FACT}'")).scalar()
