"""File systems that a test mounts, which go with it: at its end, and when its process is killed."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(place: Path, *commands: list[str]) -> Iterator[None]:
    """Run commands that mount something at a folder, and unmount it at the end; skip the test where none may."""
    # Its input ends with this process, however that ends; a session of its own lets no signal for this one reach it.
    waiting = ["sh", "-c", 'cat; while umount -l "$0" 2>/dev/null; do :; done', str(place)]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, start_new_session=True):  # the end of the block closes it
        for command in commands:
            if subprocess.run([*command, place], capture_output=True, check=False).returncode:
                pytest.skip("no file system can be mounted here")
        yield
