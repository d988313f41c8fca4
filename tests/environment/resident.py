"""The program for scripts that call it often: a process that has loaded it forks for each call.

A call costs some ten milliseconds instead of a second of imports. What a call may change is its own process: arguments,
folder, environment and the three streams are those of the caller, and the exit code goes back to it.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import DEMO, ROOT

CALLER = """\
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    call = {"words": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}
    socket.send_fds(line, [json.dumps(call).encode()], [0, 1, 2])
    line.shutdown(socket.SHUT_WR)
    sys.exit(int(line.recv(16)))
"""
MAX_CALL_BYTES = 1 << 20


@contextmanager
def resident() -> Iterator[str]:
    """Start the process; give a line of a shell script that calls the program with its arguments."""
    with tempfile.TemporaryDirectory(prefix="profsvc-") as folder:
        caller, address = Path(folder, "caller.py"), Path(folder, "socket")
        caller.write_text(CALLER, encoding="utf-8")
        command = [sys.executable, "-c", f"from tests.environment.resident import serve; serve({str(address)!r})"]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            yield f'exec "{sys.executable}" -IS "{caller}" "{address}" "$@"'
            process.stdin.close()  # it ends with its standard input
            process.terminate()


def serve(address: str) -> None:
    """Store and compare runs, which loads and reads what calls need, and answer calls one after the other."""
    _use()
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(address)
        line.listen()
        print("ready", flush=True)  # noqa: T201
        while True:
            call, _ = line.accept()
            with call:
                _answer(call)


def _answer(call: socket.socket) -> None:
    written, streams, *_ = socket.recv_fds(call, MAX_CALL_BYTES, 3)
    while more := call.recv(MAX_CALL_BYTES):
        written += more
    if not (child := os.fork()):
        given = json.loads(written)
        for number, (stream, name, mode) in enumerate(zip(streams, ("stdin", "stdout", "stderr"), "rww", strict=True)):
            os.dup2(stream, number)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
        os.chdir(given["folder"])
        os.environ.clear()
        os.environ.update(given["environment"])
        _run(given["words"])
    for stream in streams:
        os.close(stream)
    call.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _run(words: list[str]) -> None:
    """Run the program and end this process with its exit code, as the interpreter would."""
    from profsvc.cli import main

    sys.argv = ["profsvc", *words]
    code: object = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _use() -> None:
    from click.testing import CliRunner

    from profsvc.cli.application import app

    with tempfile.TemporaryDirectory(prefix="profsvc-") as folder:
        for words in (["upload", str(DEMO), "--run", "a"], ["compare", "a", "a"], ["runs", "-o", "csv"]):
            CliRunner().invoke(app, ["--store", str(Path(folder, "store.sqlite")), *words])
    assert threading.active_count() == 1, "a fork has no other threads"
