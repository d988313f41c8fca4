"""Nsight Systems' own report: where the tool ``nsys`` is, it exports the report to SQLite in a limited process."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats import workers
from profsvc.formats.nsys import database
from profsvc.formats.parsing import unpacked_copies
from profsvc.formats.parsing.stream import open_stream
from profsvc.formats.unrecognized import is_text
from profsvc.tables import Batch
from profsvc.workers.process import Limits, Subject, first_request, open_worker

ENDINGS = (".nsys-rep", ".qdrep")
COMMAND = "nsys"
JOB = Path(workers.__file__).with_name("export_job.py")
MIN_MEMORY_BYTES = 16 << 30
"""Address space of the tool, most of which it does not use, for the smallest report."""
MEMORY_PER_BYTE = 64
MIN_SECONDS = 60
"""CPU time of the tool for the smallest report."""
MIN_BYTES_PER_S = 1 << 19
MAX_OPEN_FILES = 1024
MIN_DATABASE_BYTES, DATABASE_PER_BYTE = 256 << 20, 64
"""Size of the exported database; it is several times as large as the report."""
ENVIRONMENT = ("PATH", "HOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


def can_export(begin: bytes, name: str | None) -> bool:
    """Return whether a file is a report by its name, is not text, and can be exported here."""
    return bool(name) and str(name).lower().endswith(ENDINGS) and not is_text(begin) and bool(shutil.which(COMMAND))


def _again(name: str) -> str:
    stem = shlex.quote(Path(name).stem)
    return f"export it where it opens and upload that: nsys export --type sqlite -o {stem}.sqlite {shlex.quote(name)}"


@contextmanager
def exported(stream: BinaryIO, name: str, limit: int | None = None) -> Iterator[BinaryIO]:
    """Export a report, and give its database; a file of more than ``limit`` bytes is refused."""
    with tempfile.TemporaryDirectory(prefix="profsvc-", dir=unpacked_copies.folder()) as folder:
        report, database_file = Path(folder, "report.nsys-rep"), Path(folder, "report.sqlite")
        with report.open("wb") as file:
            size = unpacked_copies.copy(open_stream(stream, limit), file)
        again = partial(_again, name)
        limits = Limits(
            MIN_MEMORY_BYTES + MEMORY_PER_BYTE * size, MIN_SECONDS + size // MIN_BYTES_PER_S, MAX_OPEN_FILES,
            MIN_DATABASE_BYTES + DATABASE_PER_BYTE * size,
        )  # fmt: skip
        command = [
            str(shutil.which(COMMAND)),
            "export",
            "--type",
            "sqlite",
            "--output",
            str(database_file),
            str(report),
        ]
        environment = {key: os.environ[key] for key in ENVIRONMENT if key in os.environ} | {"TMPDIR": folder}
        with open_worker(JOB, limits, Subject("Nsight Systems report", again)) as worker:
            request = first_request(limits, command=command, folder=folder, environment=environment)
            _, status, words = worker.ask(request)
        if status or not database_file.is_file():
            said = f"exit status {status}{f': {words}' if words else ''}"
            raise BrokenInputError(f"nsys cannot export the report ({said}); {again()}")
        with database_file.open("rb") as found:
            yield found


def read(stream: BinaryIO, name: str, limit: int | None = None) -> Iterator[Batch]:
    """Export a report, and read its database."""
    with exported(stream, name, limit) as found:
        yield from database.read(found)
