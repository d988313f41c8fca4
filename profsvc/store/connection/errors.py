"""Database errors, translated into messages for the user."""

from collections.abc import Iterator
from contextlib import contextmanager

from profsvc.errors import NoSpaceError, ServiceError, StoreBusyError
from profsvc.store.connection import postgres
from profsvc.store.connection.sql import Engine
from profsvc.store.connection.urls import address

BUSY_SECONDS = 10


# Part of a SQLite message -> what happened and what to do.
SQLITE_ADVICE = {
    "disk is full": "the disk of the store is full; nothing was changed; free some space and retry",
    "readonly": "the store is not writable; check the permissions of the file and its folder",
    "unable to open": "the store cannot be opened; check that its folder exists and that you may write there",
    "not a database": "the file is not a SQLite database; give another path with --store",
    "malformed": "the file is damaged; restore it from a backup",
    "disk i/o": "I/O error while accessing the store; nothing was changed; check the disk",
}


@contextmanager
def translate_errors(engine: Engine) -> Iterator[None]:
    """Raise errors of the database as errors with a message for the user."""
    try:
        yield
    except Exception as error:
        if (said := driver_error(error, engine)) is None:
            raise
        if engine.dialect.name == "postgresql":
            raise postgres.user_error(said, address(engine)) from error
        raise user_error(str(said), address(engine)) from error


def driver_error(error: Exception, engine: Engine) -> Exception | None:
    """Return the error of the driver behind an error of a query; None if it is none of the database."""
    if isinstance(error, engine.dialect.loaded_dbapi.Error):
        return error
    if type(error).__module__.startswith("sqlalchemy") and hasattr(error, "orig"):
        return error.orig if isinstance(error.orig, Exception) else error
    return None


def user_error(message: str, where: str) -> ServiceError:
    """Return the error for a message of SQLite.

    >>> str(user_error("database or disk is full", "sqlite:///a.sqlite"))
    'sqlite:///a.sqlite: the disk of the store is full; nothing was changed; free some space and retry'
    """
    lower = message.lower()
    if "locked" in lower or "busy" in lower:
        return StoreBusyError(
            f"{where}: another process has been writing for more than {BUSY_SECONDS} s; nothing was changed; "
            "retry later"
        )
    for sign, advice in SQLITE_ADVICE.items():
        if sign in lower:
            return (NoSpaceError if sign == "disk is full" else ServiceError)(f"{where}: {advice}")
    return ServiceError(f"{where}: unexpected database error: {message}")
