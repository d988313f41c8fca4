"""Answers that a service keeps until anybody commits something."""

import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection import kept_answers
from profsvc.store.connection.filesystem import journal_of
from profsvc.store.connection.sqlite_file import has_journal
from profsvc.store.connection.transactions import in_transaction, reading, writing
from tests.store.conftest import batches, info, only_on

RENAME = text("UPDATE runs SET name = :name")


@pytest.fixture
def pooled(url: str, sqlite_template: Path) -> Iterator[Engine]:
    """A store with one run, as a service opens it."""
    if "://" not in url:
        shutil.copy(sqlite_template, url)
    engine = store.open_store(url, pooled=True)
    store.write_upload(engine, info(), store.RunInfo(name="first"), batches(1))
    yield engine
    engine.dispose()


class Question:
    """Asks for the name of the run, and counts how often."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.asked = engine, 0

    def __call__(self) -> str:
        self.asked += 1
        with reading(self.engine) as connection:
            return str(connection.execute(text("SELECT name FROM runs")).scalar_one())


def rename(engine: Engine, name: str) -> None:
    with writing(engine) as connection:
        connection.execute(RENAME, {"name": name})


def test_an_answer_is_kept_until_somebody_commits(pooled: Engine, url: str) -> None:
    question = Question(pooled)
    assert [store.kept_answer(pooled, "name", question) for _ in range(3)] == ["first"] * 3
    assert question.asked == 1
    rename(pooled, "own")
    assert store.kept_answer(pooled, "name", question) == "own"
    other = store.connect(url)
    rename(other, "other")
    other.dispose()
    assert [store.kept_answer(pooled, "name", question) for _ in range(2)] == ["other"] * 2
    assert question.asked == 3


@only_on("sqlite", "a server sees the changes of every client alike")
def test_another_process_commits(pooled: Engine, url: str) -> None:
    question = Question(pooled)
    store.kept_answer(pooled, "name", question)
    change = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(\"UPDATE runs SET name='b'\"); c.commit()"
    )
    subprocess.run([sys.executable, "-c", change, url], check=True)
    assert store.kept_answer(pooled, "name", question) == "b"


@only_on("sqlite", "a server has no file that a backup could replace")
def test_a_backup_takes_the_place_of_the_file(pooled: Engine, url: str, tmp_path: Path) -> None:
    question = Question(pooled)
    store.kept_answer(pooled, "name", question)
    copy = shutil.copy(url, tmp_path / "copy.sqlite")
    other = store.connect(str(copy))
    rename(other, "restored")
    other.dispose()
    Path(copy).replace(url)
    assert store.kept_answer(pooled, "name", question) == "restored"


@only_on("sqlite", "readers and writers of a server do not wait for each other")
def test_a_writer_and_a_page_do_not_wait_for_each_other(pooled: Engine, url: str) -> None:
    """Without a write-ahead log a writer waits at its commit for a page, and whoever begins to read for the writer."""
    other = sqlite3.connect(url, timeout=30, isolation_level=None, check_same_thread=False)
    question, begun = Question(pooled), time.monotonic()

    @store.snapshot
    def page(engine: Engine) -> str:
        question()
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE runs SET name = 'new'")
        commit.start()
        time.sleep(0.2)
        return store.kept_answer(engine, "name", question)

    commit = threading.Thread(target=other.execute, args=("COMMIT",))
    assert page(pooled) == "first"
    commit.join()
    assert time.monotonic() - begun < 10
    assert store.kept_answer(pooled, "name", question) == "new"
    other.close()


def test_a_page_that_began_before_a_change_leaves_no_old_answer(pooled: Engine, url: str) -> None:
    question, other = Question(pooled), store.connect(url)
    with reading(pooled) as connection:
        has_log = has_journal(connection) and journal_of(Path(url)) == "wal" if "://" not in url else False

    @store.snapshot
    def page(engine: Engine) -> tuple[str, str, str]:
        before = question()
        if engine.dialect.name == "postgresql" or has_log:
            rename(other, "new")
        return before, store.kept_answer(engine, "name", question), question()

    assert page(pooled) == ("first", "first", "first")  # the page goes on with what it began
    rename(other, "new")
    assert store.kept_answer(pooled, "name", question) == "new"
    other.dispose()


def test_nothing_is_kept_of_an_open_transaction(pooled: Engine) -> None:
    question = Question(pooled)
    with writing(pooled) as connection, in_transaction(pooled, connection):
        connection.execute(RENAME, {"name": "not yet"})
        assert store.kept_answer(pooled, "name", question) == "not yet"
        connection.execute(RENAME, {"name": "first"})
    assert store.kept_answer(pooled, "name", question) == "first"


def test_a_command_keeps_nothing(engine: Engine) -> None:
    asked: list[int] = []
    answers = [store.kept_answer(engine, "key", lambda: len(asked.append(1) or asked)) for _ in range(2)]
    assert answers == [1, 2]


def test_those_asked_last_are_kept(pooled: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "MAX_ANSWERS", 2)
    asked: list[str] = []

    def ask(key: str, is_worth: Callable[[str], bool] | None = None) -> None:
        store.kept_answer(pooled, key, lambda: asked.append(key) or key, is_worth=is_worth)

    for key in ("a", "b", "a", "c", "a", "b"):
        ask(key)
    assert asked == ["a", "b", "c", "b"]
    for _ in range(2):
        ask("large", lambda _: False)
    assert asked[4:] == ["large", "large"]
