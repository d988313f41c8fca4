"""Questions that read, and that end when their time is up."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from profsvc.store.connection.errors import driver_error
from profsvc.store.connection.sql import Connection, Engine
from profsvc.store.connection.transactions import reading
from profsvc.store.sandbox import rules

REPEAT_S = 0.05
"""Seconds between interrupts of a question: one that comes between two statements of it is lost."""


class _Interrupter:
    """A thread that interrupts every connection to SQLite whose time is up.

    A progress handler would take the interpreter's lock again and again while a statement runs. Each time it waits
    until the thread of another page lets go of it, which made a long question many times longer.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deadlines: dict[object, tuple[float, Any]] = {}
        self._wakes_at = math.inf
        self._thread = threading.Thread()

    @contextmanager
    def interrupts(self, driver: Any, seconds: float) -> Iterator[None]:
        """Interrupt what runs on a connection after ``seconds``, but nothing after the block."""
        token, deadline = object(), time.monotonic() + seconds
        with self._changed:
            self._deadlines[token] = deadline, driver
            if not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="time limits", daemon=True)
                self._thread.start()
            elif deadline < self._wakes_at:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._deadlines[token]

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for deadline, driver in self._deadlines.values():
                    if deadline <= now:
                        driver.interrupt()
                first = min((deadline for deadline, _ in self._deadlines.values()), default=math.inf)
                self._wakes_at = max(first, now + REPEAT_S)
                self._changed.wait(None if first == math.inf else self._wakes_at - now)


_INTERRUPTER = _Interrupter()


@contextmanager
def reading_with_timeout(engine: Engine, seconds: float) -> Iterator[Connection]:
    """Give a connection that only reads, and whose queries end with `TimeLimitError` when their time is up."""
    if seconds <= 0:
        raise rules.timeout_error(seconds)
    with reading(engine) as connection:
        try:
            if engine.dialect.name == "sqlite":
                with _INTERRUPTER.interrupts(connection.connection.driver_connection, seconds):
                    yield connection
            else:
                connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, math.ceil(1000 * seconds))}")
                yield connection
        except Exception as error:
            said = driver_error(error, engine)
            if "interrupted" in str(said) or getattr(said, "sqlstate", None) == "57014":
                raise rules.timeout_error(seconds) from None
            raise
