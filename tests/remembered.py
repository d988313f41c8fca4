"""Answers of the analysis that a test process remembers: it is pure, and most tests look at what is done with them."""

import hashlib
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import isgeneratorfunction
from threading import Lock
from types import MappingProxyType
from typing import Any

import pytest

from profsvc.analysis import analyze, kernel_means
from profsvc.analysis.power import analyze as power

FUNCTIONS = [
    (analyze, "launch_results"), (analyze, "model_results"), (analyze, "run_results"),
    (kernel_means, "launch_results"), (kernel_means, "model_results"), (kernel_means, "run_results"),
    (power, "analyze_power"),
]  # fmt: skip
MAX_ANSWERS, MAX_BYTES = 400, 1 << 20


class _Key(pickle.Pickler):
    """Writes arguments; the tables of the program are read once, and stand for themselves."""

    def persistent_id(self, one: Any) -> int | None:
        return id(one) if isinstance(one, MappingProxyType) else None


class Memory:
    """The newest answers by the function and all that it was given; whoever asks gets a copy of his own."""

    def __init__(self) -> None:
        self.is_on = True
        self._answers: dict[bytes, bytes] = {}
        self._lock = Lock()

    @contextmanager
    def off(self) -> Iterator[None]:
        """Let everything be computed within the block."""
        before, self.is_on = self.is_on, False
        yield
        self.is_on = before

    def remembering(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that computes the answer to the same arguments once."""

        def answer(*given: Any) -> Any:
            if not self.is_on:
                return function(*given)
            written = io.BytesIO()
            _Key(written).dump((function.__module__, function.__name__, given))
            key = hashlib.sha256(written.getbuffer()).digest()
            if (known := self._answers.get(key)) is None:
                found = function(*given)
                known = pickle.dumps(list(found) if isgeneratorfunction(function) else found)
                self._keep(key, known)
            copied = pickle.loads(known)
            return iter(copied) if isgeneratorfunction(function) else copied

        return answer

    def _keep(self, key: bytes, answer: bytes) -> None:
        if len(answer) > MAX_BYTES:
            return
        with self._lock:
            self._answers[key] = answer
            if len(self._answers) > MAX_ANSWERS:
                del self._answers[next(iter(self._answers))]

    @contextmanager
    def in_place(self) -> Iterator["Memory"]:
        """Let the analysis remember within the block."""
        with pytest.MonkeyPatch.context() as patched:
            for module, name in FUNCTIONS:
                patched.setattr(module, name, self.remembering(getattr(module, name)))
            yield self
