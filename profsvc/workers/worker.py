"""Entry of a worker process: it limits itself and runs one job; it uses only the standard library.

    python -I -S worker.py JOB.py PIPE

A crafted file can make a library use time or memory without end inside one call, which cannot be interrupted from
within the process. The system ends this process at its limits, and the parent may kill it. ``PIPE`` is the number of
the end of a pipe: the system ends this process too when the parent has ended, however it did, and closed the other end.
It is a new Python process rather than a fork, so that it starts in 20 ms and inherits neither memory nor files.

Requests and responses are frames: a length of eight bytes and values written by `marshal`, which cannot contain code.
The first request is a dict with the limits and what the job needs. A job is a file with a function ``run(asked,
received, send)``: ``asked`` is this dict, ``received()`` returns the next request or None, ``send(body)`` responds with
a marshalled tuple. ``("damaged", words)``, ``("refused", words)`` and ``("error", words)`` say what is wrong.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes enumerations of its numbers, which takes 3 ms
import fcntl
import marshal
import os
import resource
import select
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType

TYPE_CHECKING = False  # as `typing` has it, whose import takes 4 ms of each worker
if TYPE_CHECKING:
    from typing import Any, BinaryIO


def cap(memory: int, seconds: int, files: int, file_bytes: int = 0) -> None:
    """Limit the resources of this process and of those that it starts."""
    limits = {
        resource.RLIMIT_AS: address_space_bytes() + memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_NOFILE: files,
        resource.RLIMIT_CORE: 0,
    }
    for limit, most in limits.items():
        hard = resource.getrlimit(limit)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))


def address_space_bytes() -> int:
    """Return the bytes of address space of this process; 0 if the system does not report them."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123  # the worker imports as little as it can
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def end_with_parent(pipe: int) -> None:
    """Let the system end this process, and those that it starts, when the other end of a pipe is closed."""
    _signal.signal(_signal.SIGIO, _signal.SIG_DFL)
    fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([pipe], [], [], 0)[0]:  # it was closed before
        sys.exit(1)


def send(out: BinaryIO, body: bytes) -> None:
    """Write a frame."""
    out.write(len(body).to_bytes(8, "big"))
    out.write(body)
    out.flush()


def received(source: BinaryIO) -> Any:
    """Read a frame; None at the end."""
    length = int.from_bytes(source.read(8), "big")
    return marshal.loads(source.read(length)) if length else None


def main() -> None:
    """Run the job of the first argument until the pipe of the second is closed."""
    end_with_parent(int(sys.argv[2]))
    source = sys.stdin.buffer
    # A library may write to the standard output, which would damage the frames.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asked = received(source)
    cap(**asked.pop("limits"))
    sys.dont_write_bytecode = True
    job = ModuleType("job")  # compiled when the program was installed or used, unlike what `runpy` takes
    SourceFileLoader("job", sys.argv[1]).exec_module(job)
    job.run(asked, lambda: received(source), lambda body: send(out, body))


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()
