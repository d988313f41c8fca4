"""Remove the folder of a Postgres server, and end the server, when the standard input ends: with the process before it.

A killed process can clean up nothing, and a server is a daemon that outlives it.
"""

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

MAX_SECONDS = 10


def _servers(folder: Path) -> list[int]:
    """Return the processes of the servers that run in a folder; a number in a stale file may be another program's."""
    found = []
    for file in (*folder.glob("postmaster.pid"), *folder.glob("*/postmaster.pid")):
        with suppress(OSError, ValueError, IndexError):
            number = int(file.read_text(encoding="utf-8").splitlines()[0])
            if Path(f"/proc/{number}/cwd").readlink() == file.parent.resolve():
                found.append(number)
    return found


def main(folder: Path) -> None:
    """Wait, end the servers and remove the folder; a server that is still starting gets some seconds."""
    sys.stdin.buffer.read()
    end = time.monotonic() + MAX_SECONDS
    while folder.exists() and time.monotonic() < end:
        running = _servers(folder)
        for number in running:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGQUIT)
        if running:
            time.sleep(0.05)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
