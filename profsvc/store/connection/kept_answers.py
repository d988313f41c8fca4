"""Answers of a process that lives long, kept for as long as the store does not change."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import is_in_transaction, reading, snapshot_version
from profsvc.store.connection.urls import file_of
from profsvc.store.connection.versions import Version, watch

MAX_ANSWERS = 256
"""Answers that are kept of a store, those asked for last."""
Answer = TypeVar("Answer")


class _KeptAnswers:
    """The answers of one store, each with the version of the store that it is of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, tuple[Version, Any]] = OrderedDict()

    def get(self, key: Hashable, version: Version) -> tuple[Any] | None:
        """Return the answer of a question in a 1-tuple; None if the store is another one since."""
        with self._lock:
            if key not in self._answers or self._answers[key][0] != version:
                return None
            self._answers.move_to_end(key)
            return (self._answers[key][1],)

    def keep(self, key: Hashable, version: Version, answer: Any) -> None:
        """Keep an answer that was read after the store had this version."""
        with self._lock:
            self._answers[key] = version, answer
            self._answers.move_to_end(key)
            if len(self._answers) > MAX_ANSWERS:
                self._answers.popitem(last=False)


_OF_DIALECTS: "WeakKeyDictionary[Any, _KeptAnswers]" = WeakKeyDictionary()


def keep_answers(engine: Engine) -> None:
    """Let `kept_answer` keep answers of the store of this engine."""
    _OF_DIALECTS[engine.dialect] = _KeptAnswers()  # engines with other options have the same dialect
    if (file := file_of(engine)) is not None:
        watch(engine, file)


def kept_answer(
    engine: Engine, key: Hashable, question: Callable[[], Answer], *, is_worth: Callable[[Answer], bool] | None = None
) -> Answer:
    """Return the answer of a question that is named by ``key``, as it was before unless the store has changed.

    The caller must not change it. Only answers that are ``is_worth`` it are kept. An engine without any, and a
    transaction that writes, ask the question each time. Within a `snapshot` the answer is of its state.
    """
    kept = _kept_of(engine)
    if kept is None or is_in_transaction(engine) or (version := _version(engine)) is None:
        return question()
    if (found := kept.get(key, version)) is not None:
        answer: Answer = found[0]
        return answer
    answer = question()
    if is_worth is None or is_worth(answer):
        kept.keep(key, version, answer)
    return answer


def _kept_of(engine: Engine) -> _KeptAnswers | None:
    try:
        return _OF_DIALECTS.get(engine.dialect)
    except TypeError:  # a reader of files has no dialect of SQLAlchemy
        return None


def _version(engine: Engine) -> Version | None:
    """Return what is another value after each commit of anybody."""
    if engine.dialect.name == "sqlite":
        return snapshot_version(engine)
    with reading(engine) as connection:
        return (str(connection.execute(text("SELECT CAST(pg_current_snapshot() AS text)")).scalar_one()),)
