"""The address of a store: URLs given by users, the file of the store, and its address in messages."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from profsvc.errors import ServiceError, UsageError, without_password
from profsvc.store.connection.sql import Engine

if TYPE_CHECKING:
    from sqlalchemy import URL

DEFAULT_FILE = "profsvc.sqlite"


def data_folder() -> Path:
    """Return the data folder of the user, created with access for this user only."""
    from platformdirs import user_data_path

    folder = user_data_path("profsvc", appauthor=False)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ServiceError(f"cannot make {folder} for the store: {error.strerror}; choose one with --store") from None
    return folder


def path_of(text: str | None) -> Path | None:
    """Return the file that the value of a user names; None where it is a URL.

    >>> str(path_of("lab.sqlite")), path_of("postgresql://host/db")
    ('lab.sqlite', None)
    """
    if not text:
        return data_folder() / DEFAULT_FILE
    return None if "://" in text else Path(text)


def url_of(text: str | None) -> "URL":
    """Return the URL of a store from the value of a user: nothing, a path or a database URL.

    >>> str(url_of("lab.sqlite")), str(url_of("postgresql://host/db"))
    ('sqlite:///lab.sqlite', 'postgresql+psycopg://host/db')
    """
    from sqlalchemy import URL, make_url
    from sqlalchemy.exc import ArgumentError

    if not text or "://" not in text:
        return URL.create("sqlite", database=text or str(data_folder() / DEFAULT_FILE))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the second is about its port
        shown = re.sub(r"//.*@", "//***@", without_password(text))
        raise UsageError(
            f"{shown!r} is not a database URL; write a path, sqlite:///PATH or postgresql://HOST/NAME"
        ) from None
    if url.drivername == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in {"sqlite", "postgresql"}:
        raise UsageError(f"the store cannot be {url.get_backend_name()!r}; it can be sqlite or postgresql")
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise UsageError("an in-memory store would be lost immediately; give a path")
    return url


def file_of(engine: Engine) -> Path | None:
    """Return the file of a SQLite store; None for a server."""
    return Path(str(engine.url.database)) if engine.dialect.name == "sqlite" else None


def address(engine: Engine) -> str:
    """Return the address of a store for messages, without the password."""
    if engine.dialect.name == "sqlite":
        return f"sqlite:///{engine.url.database}"
    return without_password(engine.url.set(drivername=engine.dialect.name).render_as_string(hide_password=True))
