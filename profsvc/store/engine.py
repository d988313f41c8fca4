"""Where the store lies, how a connection to it behaves, and what its failures mean to a user."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from profsvc.errors import NoSpaceError, ServiceError, StoreBusyError, UsageError
from profsvc.store import locks, rights, server

BUSY_SECONDS = 10
COMMIT_SECONDS = 60  # how long a writer waits at its end for those who still read what was before
OLDEST_SQLITE = (3, 37, 0)  # the first with strict tables
WRITE = "profsvc_write"

Asked = ParamSpec("Asked")
Answered = TypeVar("Answered")
_SHARED: ContextVar[Connection | None] = ContextVar("shared", default=None)
"""The connection of the question that is being answered."""
_WITHIN: ContextVar[tuple[Engine, Connection] | None] = ContextVar("within", default=None)
"""The transaction that all of a piece of work goes into."""


class _Kept(NamedTuple):
    """The connections of a piece of work that nobody uses just now: those that read, and those that write."""

    engine: Engine
    reading: list[Connection]
    writing: list[Connection]

    def close(self) -> None:
        """Close them."""
        while idle := self.reading or self.writing:
            idle.pop().close()


_KEPT: ContextVar[_Kept | None] = ContextVar("kept", default=None)

# File systems of one machine, where the shared memory of a write-ahead log is shared indeed.
LOCAL = {
    *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "reiserfs", "nilfs2"),
    *("tmpfs", "ramfs", "overlay"),
}
MOUNTS = Path("/proc/self/mountinfo")

# What SQLite says -> what it means here and what to do.
ADVICE = {
    "disk is full": "no space is left where the store lies; nothing was changed; free some space and repeat",
    "readonly": "the store cannot be written; check the permissions of the file and of its folder",
    "unable to open": "the store cannot be opened; check that its folder exists and that you may write there",
    "not a database": "the file is not a SQLite database; give another path with --store",
    "malformed": "the file is damaged; restore it from a backup",
    "disk i/o": "the disk failed while the store was read or written; nothing was changed; check the disk",
}


def data_folder() -> Path:
    """Return the user's data folder, made for this user alone."""
    from platformdirs import user_data_path

    folder = user_data_path("profsvc", appauthor=False)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ServiceError(f"cannot make {folder} for the store: {error.strerror}; choose one with --store") from None
    return folder


def url_of(text: str | None) -> URL:
    """Read what a user gave as the store: nothing, a path or a database URL.

    >>> str(url_of("lab.sqlite")), str(url_of("postgresql://host/db"))
    ('sqlite:///lab.sqlite', 'postgresql+psycopg://host/db')
    """
    if not text:
        return URL.create("sqlite", database=str(data_folder() / "profsvc.sqlite"))
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except ArgumentError:
        raise UsageError(
            f"{text!r} is no database URL; write a path, sqlite:///PATH or postgresql://HOST/NAME"
        ) from None
    if url.drivername == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in {"sqlite", "postgresql"}:
        raise UsageError(f"the store cannot be {url.get_backend_name()!r}; it can be sqlite or postgresql")
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise UsageError("a store in memory would be lost at once; give a path")
    return url


def file_of(engine: Engine) -> Path | None:
    """Return the file of a SQLite store, None for a server."""
    return Path(str(engine.url.database)) if engine.dialect.name == "sqlite" else None


def address(engine: Engine) -> str:
    """Return where a store lies, for people: without the password."""
    return engine.url.set(drivername=engine.dialect.name).render_as_string(hide_password=True)


def wal_is_safe(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Tell whether this SQLite can keep a write-ahead log without ever losing a committed row.

    Before these releases two connections that write and checkpoint at once could lose one.

    >>> wal_is_safe((3, 40, 1)), wal_is_safe((3, 44, 6)), wal_is_safe((3, 51, 2)), wal_is_safe((3, 51, 3))
    (False, True, False, True)
    """
    return version >= (3, 51, 3) or any(v <= version < (3, v[1] + 1) for v in ((3, 44, 6), (3, 50, 7)))


def file_system(path: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the kind of file system that ``path`` lies on, such as ext4 or nfs4; None where the system does not tell.

    >>> file_system(Path("/proc/self")) in {"proc", None}
    True
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    where, found, longest = path.resolve(), None, -1
    for line in lines:
        fields, _, about = line.partition(" - ")
        mounted = Path(fields.split()[4].replace("\\040", " "))
        depth = len(mounted.parts)
        # Of two mounts in one place the later hides the earlier.
        if depth >= longest and where.is_relative_to(mounted):
            found, longest = about.split()[0], depth
    return found


def journal_of(file: Path) -> str:
    """Return the journal that a store in this file must have: ``wal`` only where it is safe, else ``delete``."""
    return "wal" if wal_is_safe() and file_system(file) in LOCAL else "delete"


def make_engine(url: URL) -> Engine:
    """Make the engine of a store, without touching the database."""
    try:
        # No pool: a file opens in a millisecond and a connection in three, nothing is left open behind a forked
        # worker, and a server that was restarted is simply reached again.
        if url.get_backend_name() != "sqlite":
            engine = create_engine(url, poolclass=NullPool, connect_args=server.connect_args(url))
            event.listen(engine, "connect", server.on_connect)
            return engine
        engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise ServiceError(f"the database driver is missing ({error}); run: pip install 'profsvc[postgres]'") from None
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise ServiceError(f"SQLite {sqlite3.sqlite_version} is too old; profsvc needs 3.37 or newer")
    event.listen(engine, "do_connect", rights.before_connect)
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the module's own BEGIN is off: `_on_begin` chooses which one
    for pragma in ("foreign_keys = ON", "synchronous = FULL", "cache_size = -32768"):
        connection.execute(f"PRAGMA {pragma}")


def _on_begin(connection: Connection) -> None:
    # A plain BEGIN that reads and then writes fails at once when another writer came between; the timeout does
    # not apply to it. So writers take the lock first, and readers never do.
    driver: Any = connection.connection.driver_connection
    if connection.get_execution_options().get(WRITE):
        driver.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        driver.execute("BEGIN IMMEDIATE")
        driver.execute(f"PRAGMA busy_timeout = {COMMIT_SECONDS * 1000}")
    else:
        _begin_reading(driver, Path(str(connection.engine.url.database)))


def _begin_reading(driver: sqlite3.Connection, file: Path) -> None:
    """Begin to read; where no write-ahead log is, a writer that ends shuts readers out: wait for it in the queue."""
    until = time.monotonic() + locks.WAIT_SECONDS
    while True:
        driver.execute("BEGIN")
        try:
            driver.execute("SELECT 1 FROM sqlite_schema LIMIT 1")
            return
        except sqlite3.OperationalError as error:
            driver.rollback()
            left = until - time.monotonic()
            if "locked" not in str(error) or left <= 0:
                raise
            with locks.held(lock_of(file), "it writes to the store", shared=True, seconds=left):
                continue


def lock_of(file: Path) -> Path:
    """Return the file that writers to a SQLite store queue on."""
    return Path(f"{file.absolute()}.lock")


@contextmanager
def turn(engine: Engine) -> Iterator[None]:
    """Wait for this process's turn to write to a SQLite store; a server needs none."""
    file = file_of(engine)
    if file is None:
        yield
        return
    with locks.held(lock_of(file), "it writes to the store"):
        yield


def set_journal(engine: Engine) -> None:
    """Choose the journal that this SQLite keeps whole where it lies: the write-ahead log, else a rollback journal."""
    file = file_of(engine)
    if file is None:
        return
    with plain_errors(engine), engine.connect() as connection:
        if not has_journal(connection):
            driver: Any = connection.connection.driver_connection
            with turn(engine):
                driver.execute(f"PRAGMA journal_mode = {journal_of(file)}")


def has_journal(connection: Connection) -> bool:
    """Tell whether a SQLite file has the journal that `set_journal` chooses."""
    driver: Any = connection.connection.driver_connection
    file = Path(str(connection.engine.url.database))
    return bool(driver.execute("PRAGMA journal_mode").fetchone()[0] == journal_of(file))


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection in a transaction that only reads, or the one that all of a piece of work goes into."""
    if (own := _own(engine)) is not None:
        with plain_errors(engine):
            yield own
        return
    shared = _SHARED.get()
    if shared is not None and shared.engine is engine:
        with plain_errors(engine):
            yield shared
        return
    with plain_errors(engine), _connected(engine, writes=False) as connection, connection.begin():
        yield connection


@contextmanager
def _connected(engine: Engine, writes: bool) -> Iterator[Connection]:
    """Give a connection: one that the work keeps, else a new one. Where anything goes wrong, all are closed."""
    kept = _KEPT.get()
    # The engine of a connection that writes is another object with its options; the pool is that of the store.
    if kept is None or kept.engine.pool is not engine.pool:
        with _opened(engine, writes) as connection:
            yield connection
        return
    idle = kept.writing if writes else kept.reading
    connection = idle.pop() if idle else _opened(engine, writes)
    try:
        yield connection
    except BaseException:
        connection.close()
        kept.close()
        raise
    idle.append(connection)


def _opened(engine: Engine, writes: bool) -> Connection:
    return (engine.execution_options(**{WRITE: True}) if writes else engine).connect()


def on_kept_connections(
    work: Callable[Concatenate[Engine, Asked], Answered],
) -> Callable[Concatenate[Engine, Asked], Answered]:
    """Let what a piece of work asks and writes step by step go over the same connections; its end closes them.

    Each step has a transaction of its own as ever. To open a connection takes longer than most steps.
    """

    @wraps(work)
    def worked(engine: Engine, /, *args: Asked.args, **options: Asked.kwargs) -> Answered:
        kept = _KEPT.get()
        if kept is not None and kept.engine is engine:
            return work(engine, *args, **options)
        token = _KEPT.set(kept := _Kept(engine, [], []))
        try:
            return work(engine, *args, **options)
        finally:
            _KEPT.reset(token)
            kept.close()

    return worked


def one_state(
    question: Callable[Concatenate[Engine, Asked], Answered],
) -> Callable[Concatenate[Engine, Asked], Answered]:
    """Let all that a question reads be one state of the store, over one connection; it must not write.

    To open a connection takes longer than most answers: SQLite reads the statement of every view then.
    """

    @wraps(question)
    def answered(engine: Engine, /, *args: Asked.args, **options: Asked.kwargs) -> Answered:
        shared = _SHARED.get()
        if _own(engine) is not None or (shared is not None and shared.engine is engine):
            return question(engine, *args, **options)
        server_keeps = engine.dialect.name == "postgresql"
        with plain_errors(engine), ExitStack() as opened:
            # What is set for one question on a server's connection would hold for the next.
            connection = opened.enter_context(engine.connect() if server_keeps else _connected(engine, writes=False))
            if server_keeps:
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                token = _SHARED.set(connection)
                try:
                    return question(engine, *args, **options)
                finally:
                    _SHARED.reset(token)

    return answered


@contextmanager
def writing(engine: Engine, attached: Mapping[str, Path] | None = None) -> Iterator[Connection]:
    """Give a connection in a transaction that writes: all of it is kept at the end, or nothing.

    ``attached`` are SQLite files to be read from beside the store, by the name of their schema.
    """
    if (own := _own(engine)) is not None and not attached:
        with plain_errors(engine):
            yield own
        return
    # What is attached stays so until the connection ends.
    connected = partial(_opened if attached else _connected, engine, writes=True)
    with turn(engine), plain_errors(engine), connected() as connection:
        for name, path in (attached or {}).items():
            driver: Any = connection.connection.driver_connection
            driver.execute(f"ATTACH ? AS {name}", (str(path),))
            driver.execute(f"PRAGMA {name}.synchronous = OFF")  # else the commit would wait for these files as well
            driver.execute("PRAGMA main.cache_size = -4096")  # rows are only put behind the others
        with connection.begin():
            yield connection


def _own(engine: Engine) -> Connection | None:
    within = _WITHIN.get()
    return within[1] if within is not None and within[0] is engine else None


@contextmanager
def within(engine: Engine, connection: Connection) -> Iterator[None]:
    """Let all that is read and written meanwhile go into this open transaction: all of it is kept, or nothing.

    So others see rows and what was computed with them change at once, and a kill leaves both as they were.
    """
    token = _WITHIN.set((engine, connection))
    try:
        yield
    finally:
        _WITHIN.reset(token)


@contextmanager
def plain_errors(engine: Engine) -> Iterator[None]:
    """Turn what the database raises into one sentence for the user."""
    try:
        yield
    except (DBAPIError, engine.dialect.loaded_dbapi.Error) as error:
        said = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        if engine.dialect.name == "postgresql":
            raise server.explained(said, address(engine)) from error
        raise explained(str(said), address(engine)) from error


def explained(message: str, where: str) -> ServiceError:
    """Return the error for what a database said.

    >>> str(explained("database or disk is full", "sqlite:///a.sqlite"))
    'sqlite:///a.sqlite: no space is left where the store lies; nothing was changed; free some space and repeat'
    """
    lower = message.lower()
    if "locked" in lower or "busy" in lower:
        return StoreBusyError(
            f"{where}: another process has been writing for more than {BUSY_SECONDS} s; nothing was changed; "
            "repeat later"
        )
    for sign, advice in ADVICE.items():
        if sign in lower:
            return (NoSpaceError if sign == "disk is full" else ServiceError)(f"{where}: {advice}")
    return ServiceError(f"{where}: the database answered: {message}")
