"""The command line: data goes to stdout, messages go to stderr. Each module holds one group of commands."""

import contextlib
import gc
import io
import os
import sys

MIN_OBJECTS_TO_COLLECT = 50_000
"""What is imported is a million objects that stay; Python looks through them again with every 700 that are new."""


def main() -> None:
    """Run the command line; what it prints is UTF-8 whatever the terminal's or the pipe's default is."""
    # The matrices of a log are many and small: one thread per core costs more processor time and saves none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(MIN_OBJECTS_TO_COLLECT)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.argv[1:] == ["--version"]:  # asked by scripts, so it must not wait for what reads other arguments
        from profsvc import settings

        with contextlib.suppress(OSError):  # then the application says what is wrong with the output
            sys.stdout.write(f"profsvc {settings.version()}\n")
            sys.stdout.flush()
            return
    from profsvc.cli.application import app

    app(prog_name="profsvc")
