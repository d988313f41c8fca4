"""Reader of Nsight Compute's own report, through NVIDIA's package ncu_report in a separate process."""

import importlib.metadata
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

from profsvc.errors import InputError
from profsvc.formats import workers
from profsvc.formats.ncu.report_instructions import read_metrics
from profsvc.formats.ncu.report_lines import read_lines
from profsvc.formats.parsing import unpacked_copies
from profsvc.formats.parsing.stream import stream_of
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch
from profsvc.workers.process import Limits, Subject, first_request, open_worker

NAME = "ncu-report"

MAGIC = b"NVR\0"
PACKAGE = "ncu_report"
JOB = Path(workers.__file__).with_name("report_job.py")
MIN_MEMORY_BYTES = 1 << 30
"""Memory of the process for the smallest report; the package itself takes a fifth of it."""
MEMORY_PER_BYTE = 24
MIN_SECONDS = 30
"""CPU time of the process for the smallest report."""
MIN_BYTES_PER_S = 1 << 18
MAX_OPEN_FILES = 32
MISSING = (
    "it is a Nsight Compute report, and NVIDIA's reader of reports is not installed on this machine; install it here "
    "or where you upload from: pip install 'profsvc[ncu]'"
)
EXPORT = "ncu --csv --page raw --print-units base -i FILE.ncu-rep > raw.csv"


def sniff(head: bytes) -> bool:
    """Return whether ``head`` begins a report."""
    return head.startswith(MAGIC)


def package_folder() -> Path | None:
    """Return the folder from which the package is imported; None if it is not installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        return None
    file = Path(found.origin)
    return file.parent.parent if found.submodule_search_locations else file.parent


def _version() -> str:
    """Return the version of the package; empty for one that comes with Nsight Compute."""
    try:
        return importlib.metadata.version("ncu-report")
    except importlib.metadata.PackageNotFoundError:
        return ""


def machine_bytes() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _again() -> str:
    return f"copy or profile it again, or export a page and upload that: {EXPORT}"


def lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines made of a report; raise `InputError` where the package is not installed."""
    folder = package_folder()
    if folder is None:
        raise InputError(f"{MISSING}; or export a page and upload that: {EXPORT}")
    with tempfile.NamedTemporaryFile(prefix="profsvc-", suffix=".ncu-rep", dir=unpacked_copies.folder()) as file:
        size = unpacked_copies.copy(stream, cast("IO[bytes]", file))
        memory = max(MIN_MEMORY_BYTES, min(MIN_MEMORY_BYTES + MEMORY_PER_BYTE * size, machine_bytes() // 2))
        limits = Limits(memory, MIN_SECONDS + size // MIN_BYTES_PER_S, MAX_OPEN_FILES)
        with open_worker(JOB, limits, Subject("report", _again)) as worker:
            needed = {"packages": str(folder), "version": _version(), "source_metrics": read_metrics()}
            request = first_request(limits, path=file.name, **needed)
            _, lines, are_all = worker.ask(request)
            yield lines
            while not are_all:
                _, lines, are_all = worker.ask(("more",))
                yield lines


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a report."""
    with Text(stream_of(lines_of(stream))) as text:
        yield from read_lines(text)
