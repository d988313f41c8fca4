"""A worker process as its parent sees it: requests with responses, within a time limit."""

import marshal
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from profsvc.errors import BrokenInputError

CHUNK = 1 << 20
WORKER = Path(__file__).with_name("worker.py")
WAIT_FACTOR = 10
"""Elapsed time limit as a multiple of the CPU time, as the machine may be busy."""
ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


@dataclass(frozen=True)
class Limits:
    """What a worker may use: bytes of memory in addition to an idle one, CPU seconds, open files, bytes of a file."""

    memory: int
    seconds: int
    files: int = 8
    file_bytes: int = 0


@dataclass(frozen=True)
class Subject:
    """How messages name what a worker reads, and the advice that ends them."""

    name: str
    again: Callable[[], str]


class Worker:
    """A worker process, which gets requests as frames, and is killed at its time limit."""

    def __init__(self, process: "subprocess.Popen[bytes]", seconds: float, subject: Subject) -> None:
        """Use a started process, for ``seconds`` at most."""
        self._process, self._left, self._subject = process, seconds, subject
        assert process.stdin
        assert process.stdout
        self._in, self._out = process.stdin, process.stdout.fileno()
        self._answers = select.poll()
        self._answers.register(self._out, select.POLLIN)

    def tell(self, frame: dict[str, Any] | tuple[Any, ...]) -> None:
        """Send a frame."""
        with suppress(BrokenPipeError, ValueError):  # a worker that has ended does not respond
            self._in.write(to_frame(frame))
            self._in.flush()

    def ask(self, frame: dict[str, Any] | tuple[Any, ...]) -> tuple[Any, ...]:
        """Send a request and return the response; raise `BrokenInputError` for an error."""
        self.tell(frame)
        answer: tuple[Any, ...] = marshal.loads(self._read(int.from_bytes(self._read(8), "big")))
        name, again = self._subject.name, self._subject.again
        if answer[0] == "refused":
            raise BrokenInputError(
                f"the {name} has {answer[1]}, which is not part of any export and could execute code; {again()}"
            )
        if answer[0] == "damaged":
            words = " ".join(answer[1].split())[:200]
            raise BrokenInputError(f"the {name} is damaged ({words}); {again()}")
        if answer[0] == "error":
            raise BrokenInputError(f"the {name} cannot be read ({answer[1]}); {again()}")
        return answer

    def _read(self, length: int) -> bytes:
        found = bytearray()
        while len(found) < length:
            began = time.monotonic()
            ready = self._answers.poll(max(self._left, 0.0) * 1000)
            self._left -= time.monotonic() - began
            piece = os.read(self._out, min(length - len(found), CHUNK)) if ready else b""
            if not piece:
                raise BrokenInputError(f"the {self._subject.name} {self._ending(ready)}; {self._subject.again()}")
            found += piece
        return bytes(found)

    def _ending(self, ready: object) -> str:
        """Return why there is no response."""
        if ready:
            with suppress(subprocess.TimeoutExpired):
                if -self._process.wait(1) in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
                    return "is damaged: what reads it crashed on it"
        return "needs more memory or time than a valid one of its size, or than this machine has"


def to_frame(content: dict[str, Any] | tuple[Any, ...]) -> bytes:
    """Return a frame: the length of its content, then the content."""
    body = marshal.dumps(content)
    return len(body).to_bytes(8, "big") + body


@contextmanager
def open_worker(job: Path, limits: Limits, subject: Subject) -> Iterator[Worker]:
    """Start the worker of a job; the first request is to be sent with `Worker.ask`, which adds the limits."""
    with start_worker(job) as process:
        yield Worker(process, WAIT_FACTOR * limits.seconds, subject)


@contextmanager
def start_worker(job: Path, variables: Sequence[str] = ENVIRONMENT) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the process of a job with some variables of the environment; others may be secret."""
    environment = {name: os.environ[name] for name in variables if name in os.environ}
    # The system closes the end that is kept here when this process is killed, and the worker ends with it.
    watched, kept = os.pipe()
    with ExitStack() as stack:
        stack.callback(os.close, kept)
        try:
            # In a separate process group, so that Ctrl-C reaches only the parent, which then ends the worker and its
            # children.
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-I", "-S", str(WORKER), str(job), str(watched)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    process_group=0,
                    pass_fds=(watched,),
                )
            )
        finally:
            os.close(watched)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(BrokenPipeError):
                process.communicate()


def first_request(limits: Limits, **needed: Any) -> dict[str, Any]:
    """Return the first request to a worker: its limits, and what its job needs."""
    return {"limits": asdict(limits), **needed}
