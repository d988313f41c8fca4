"""Open a store: a SQLite file is created or migrated if needed; the schema of a server must be current."""

import shlex
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from profsvc.errors import ServiceError, StoreVersionError
from profsvc.store.connection.sql import Engine
from profsvc.store.connection.sqlite_file import reader_of
from profsvc.store.connection.urls import address, file_of, path_of, url_of
from profsvc.store.maintenance.readiness import is_ready, latest_revision, schema_state

if TYPE_CHECKING:
    from profsvc.store.connection.replica import Place
    from profsvc.store.sandbox import reader_role


def is_server(url: str | None = None) -> bool:
    """Return whether the address of a store names a server, not a file."""
    return path_of(url) is None and url_of(url).get_backend_name() != "sqlite"


def is_server_of(engine: Engine) -> bool:
    """Return whether this store is on a server."""
    return file_of(engine) is None


def connect(url: str | None = None, *, pooled: bool = False) -> Engine:
    """Return the engine of a store with any schema; nothing is created or changed, except the default folder."""
    from profsvc.store.connection.engine import make_engine

    engine = make_engine(url_of(url), pooled=pooled)
    file = file_of(engine)
    if file is not None and not file.absolute().parent.is_dir():
        raise ServiceError(
            f"{file}: the folder {file.absolute().parent} does not exist; create it, or give another --store"
        )
    return engine


def open_store(
    url: str | None = None,
    counter_names: Iterable[str] | None = None,
    tell: Callable[[str], None] | None = None,
    *,
    pooled: bool = False,
) -> Engine:
    """Return the engine of a store, a path or a database URL; by default a SQLite file in the user's data folder.

    A new SQLite file gets the schema of this program; an older one is copied and migrated. The schema of a server
    is only changed on request. ``counter_names`` are the columns of ``v1_counters``, by default those of the program.
    Long steps report their progress by ``tell``. With ``pooled`` connections to a server stay open between
    transactions, for a process that loads many files.
    """
    engine = connect(url, pooled=pooled)
    file = file_of(engine)
    counters = None if counter_names is None else list(counter_names)
    if file is not None and not file.exists():
        upgrade(engine, counters, tell=tell)
    elif not is_ready(engine, counters):
        if file is None:
            _must_be_current(engine)
        from profsvc.store.connection.engine import set_journal

        set_journal(engine)
        upgrade(engine, counters, tell=tell)
    return engine


def open_reader(url: str | None = None, *, tell: Callable[[str], None] | None = None) -> Engine:
    """Return the engine of a store for questions: a SQLite file that is ready is read without SQLAlchemy."""
    file = path_of(url)
    if file is not None and file.is_file() and is_ready(reader := reader_of(file, lambda: connect(url))):
        return reader
    return open_store(url, tell=tell)


def open_to_read(url: str | None, read_url: str, *, as_it_is: bool = False) -> "Place":
    """Return where to read: the replica at ``read_url`` or the store; their schema is checked, but not ``as_it_is``."""
    from profsvc.store.connection.replica import Replica

    place = Replica(connect(url), read_url).place(strict=True)
    if not as_it_is:
        _must_be_current(place.engine)
    return place


def upgrade(engine: Engine, counters: list[str] | None, *, tell: Callable[[str], None] | None) -> None:
    """Migrate a store; what this needs is imported here, for a store that is ready does not wait for it."""
    from profsvc.store.maintenance import migrations

    migrations.upgrade(engine, counters, tell=tell)


def _must_be_current(engine: Engine) -> None:
    if schema_state(engine) != "current":
        from profsvc.store.connection.replica import main_of

        raise StoreVersionError(
            f"the database lacks the schema {latest_revision()} of this program; run, with the password: "
            f"profsvc --store {shlex.quote(address(main_of(engine)))} db upgrade"
        )


def create_loader(engine: Engine, name: str, *, rotate: bool = False) -> "reader_role.Reader":
    """Create or repair a Postgres role that may only load files and compute results, for workers elsewhere."""
    from profsvc.store.sandbox import loader_role

    if file_of(engine) is None:
        _must_be_current(engine)
    return loader_role.create_loader(engine, name, rotate=rotate)


def create_reader(engine: Engine, name: str, *, rotate: bool = False) -> "reader_role.Reader":
    """Create or repair a Postgres role that may only read the views; with ``rotate`` it gets a new password."""
    from profsvc.store.sandbox import reader_role

    if file_of(engine) is None:
        _must_be_current(engine)
    return reader_role.create_reader(engine, name, rotate=rotate)
