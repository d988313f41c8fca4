"""The command line as a test calls it: arguments in; exit code, data and words out."""

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine

from profsvc.cli.application import app
from tests.environment.cuda import cuda, power_cuda, script

__all__ = ["cuda", "power_cuda", "script"]


class Result(NamedTuple):
    code: int
    out: str
    err: str
    raw: bytes


Call = Callable[..., Result]
COMMANDS = app


@pytest.fixture
def store_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the store of this test lies; the user's own is never touched."""
    file = tmp_path / "store.sqlite"
    for name in (
        "PROFSVC_URL",
        "PROFSVC_TOKEN",
        "PROFSVC_DEBUG",
        "PROFSVC_SQL_ROWS",
        "PROFSVC_SQL_SECONDS",
        "PROFSVC_KEEP",
        "PROFSVC_FREE_BYTES",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PROFSVC_STORE", str(file))
    return file


@pytest.fixture
def cli(store_file: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    def call(*arguments: object, stdin: bytes | str | None = None) -> Result:
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin, prog_name="profsvc")
        assert "Traceback" not in result.output
        assert "Error: internal error" not in result.output
        return Result(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)

    return call


@pytest.fixture
def on_demo(cli: Call, demo: Engine) -> Call:
    """The command line on the store with the run ``h200``; only for commands that read."""

    def call(*arguments: object, stdin: bytes | str | None = None) -> Result:
        return cli("--store", demo.url.database, *arguments, stdin=stdin)

    return call


@pytest.fixture
def rows_sha(store_file: Path) -> Callable[[], str]:
    """A digest of every row of the store, but for how often its runs were changed."""

    def digest() -> str:
        with closing(sqlite3.connect(store_file)) as stored, closing(sqlite3.connect(":memory:")) as connection:
            stored.backup(connection)
            connection.execute("UPDATE runs SET changes = 0")
            connection.execute("UPDATE finished_parts SET changes = 0")
            return hashlib.sha256("\n".join(connection.iterdump()).encode()).hexdigest()

    return digest


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return Path(__file__).parents[2] / "fixtures"
