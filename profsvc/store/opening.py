"""A store opened by its address: a file that is made and brought up to date, or a server's that must be."""

import shlex
from collections.abc import Callable, Iterable

from sqlalchemy import Engine

from profsvc.errors import ServiceError, StoreVersionError
from profsvc.store import reader_role
from profsvc.store.engine import address, file_of, make_engine, set_journal, url_of
from profsvc.store.migrate import head, is_ready, state, upgrade


def is_server(url: str | None = None) -> bool:
    """Tell whether a store is asked for that a server keeps, not a file."""
    return url_of(url).get_backend_name() != "sqlite"


def is_server_of(engine: Engine) -> bool:
    """Tell whether a server keeps this store."""
    return file_of(engine) is None


def connect(url: str | None = None) -> Engine:
    """Return the engine of a store whatever its schema is; nothing is made or changed, except the default folder."""
    engine = make_engine(url_of(url))
    file = file_of(engine)
    if file is not None and not file.absolute().parent.is_dir():
        raise ServiceError(f"{file}: there is no folder {file.absolute().parent}; make it, or give another --store")
    return engine


def open_store(
    url: str | None = None, counter_names: Iterable[str] | None = None, tell: Callable[[str], None] | None = None
) -> Engine:
    """Return the engine of a store, a path or a database URL; by default a SQLite file in the user's data folder.

    A new SQLite file gets this program's schema, an older one is copied and brought up to date. A server's schema is
    only changed when asked. ``counter_names`` are the columns of ``v1_counters``, by default those of the program.
    What takes long says by ``tell`` how far it is.
    """
    engine = connect(url)
    file = file_of(engine)
    counters = None if counter_names is None else list(counter_names)
    if file is not None and not file.exists():
        upgrade(engine, counters, tell=tell)
    elif not is_ready(engine, counters):
        if file is None:
            _must_be_current(engine)
        set_journal(engine)
        upgrade(engine, counters, tell=tell)
    return engine


def _must_be_current(engine: Engine) -> None:
    if state(engine) != "current":
        raise StoreVersionError(
            f"the database has not the schema {head()} of this program; run, with the password: "
            f"profsvc --store {shlex.quote(address(engine))} db upgrade"
        )


def create_reader(engine: Engine, name: str, *, rotate: bool = False) -> reader_role.Reader:
    """Make a role of Postgres that may only read the views, or set it right; with ``rotate`` give it a new password."""
    if file_of(engine) is None:
        _must_be_current(engine)
    return reader_role.create_reader(engine, name, rotate=rotate)
