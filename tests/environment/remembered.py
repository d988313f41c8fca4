"""Answers of the analysis that test processes remember: it is pure, and most tests look at what is done with them."""

import hashlib
import io
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from inspect import isgeneratorfunction
from pathlib import Path
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
MAX_BYTES, MAX_BYTES_OF_PROCESS = 1 << 20, 128 << 20
"""Of an answer that is kept, and of all that a process keeps."""


class _Key(pickle.Pickler):
    """Writes arguments; the tables of the program are read once, and each is written once."""

    def __init__(self, written: io.BytesIO, tables: dict[int, tuple[MappingProxyType, bytes]]) -> None:
        super().__init__(written)
        self.tables = tables

    def persistent_id(self, one: Any) -> bytes | None:
        if not isinstance(one, MappingProxyType):
            return None
        if id(one) not in self.tables:
            self.tables[id(one)] = one, _digest(dict(one), self.tables)
        return self.tables[id(one)][1]


def _digest(given: Any, tables: dict[int, tuple[MappingProxyType, bytes]]) -> bytes:
    written = io.BytesIO()
    _Key(written, tables).dump(given)
    return hashlib.sha256(written.getbuffer()).digest()


class Memory:
    """Answers by the function and all that it was given; whoever asks gets a copy of his own.

    They lie in a folder, which the processes of a run share.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES_OF_PROCESS) -> None:
        self.is_on = True
        self._folder, self._room = folder, max_bytes
        self._tables: dict[int, tuple[MappingProxyType, bytes]] = {}
        folder.mkdir(exist_ok=True)

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
            file = self._folder / _digest((function.__module__, function.__name__, given), self._tables).hex()
            try:
                known = file.read_bytes()
            except FileNotFoundError:
                found = function(*given)
                known = pickle.dumps(list(found) if isgeneratorfunction(function) else found)
                self._keep(file, known)
            copied = pickle.loads(known)
            return iter(copied) if isgeneratorfunction(function) else copied

        return answer

    def _keep(self, file: Path, answer: bytes) -> None:
        if len(answer) > min(MAX_BYTES, self._room):
            return
        self._room -= len(answer)
        part = file.with_name(f"{file.name} {os.getpid()} {threading.get_ident()}")
        with suppress(OSError):  # the folder goes with the first process that ends
            part.write_bytes(answer)
            part.rename(file)

    @contextmanager
    def in_place(self) -> Iterator["Memory"]:
        """Let the analysis remember within the block."""
        with pytest.MonkeyPatch.context() as patched:
            for module, name in FUNCTIONS:
                patched.setattr(module, name, self.remembering(getattr(module, name)))
            yield self
