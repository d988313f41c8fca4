"""Bytes to batches of tidy tables; one file a format; nothing is computed here.

A reader is a module with

* ``NAME``: its name, as in ``--format NAME``;
* ``PAGE``: help shown by ``profsvc formats NAME``: which command makes such a file, what is taken from it, an example;
* ``sniff(head: bytes) -> bool``: does it know a file that begins with these (decompressed) bytes;
* ``read(stream: BinaryIO) -> Iterator[Batch]``: the whole file, streaming; memory does not grow with the file;
* ``WHOLE_FILE = True``, optional: its ``sniff`` is sure only of a whole file, as a table of another reader may follow.

``READERS`` is the whole registry. To add a format, add its file, its name here, and a fixture with its truth.
"""

from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol, cast

from profsvc.errors import NotFoundError, UnknownFormatError
from profsvc.formats import (
    afterburner,
    characterization,
    codecarbon,
    dcgm,
    extech,
    hardware_monitor,
    hioki,
    joulescope,
    jtop,
    kineto,
    lvm,
    marks,
    memory_trace,
    monsoon,
    ncu_details,
    ncu_raw,
    ncu_session,
    ncu_source,
    ncu_summary,
    ncu_text,
    nsys_json,
    nsys_sqlite,
    nsys_stats,
    nsys_text,
    nvidia_smi,
    nvidia_smi_dmon,
    nvidia_smi_q,
    nvml_energy,
    nvprof,
    nvprof_text,
    otii,
    picolog,
    ptdaemon,
    rocm_smi,
    rocprof,
    rocprof_results,
    rocprof_sqlite,
    tdms,
    tegrastats,
    timeseries,
    tweet_a_watt,
    wattsup,
    yokogawa,
    zeus,
)
from profsvc.formats.head import Head
from profsvc.formats.named_columns import Named
from profsvc.formats.noted_lines import Account
from profsvc.formats.stream import LineNotes, notes_of, open_stream, peek
from profsvc.formats.unknown import refusal, refuse_foreign
from profsvc.tables import Batch, check, check_wide

HEAD_BYTES = 256 << 10
MOST_HEAD_BYTES = 16 << 20
FOREIGN_BYTES = 64


class Reader(Protocol):
    """What a reader's module offers."""

    NAME: str
    PAGE: str

    def sniff(self, head: bytes) -> bool:
        """Tell whether the reader knows a file that begins with ``head``."""

    def read(self, stream: BinaryIO) -> Iterator[Batch]:
        """Read the whole decompressed file."""


PROFILERS = (
    *(ncu_raw, ncu_details, ncu_text, ncu_summary, ncu_session, ncu_source),
    *(nvprof, nvprof_text, nsys_stats, nsys_text, nsys_json, nsys_sqlite, kineto),
    *(rocprof, rocprof_results, rocprof_sqlite),
)
SENSORS = (nvidia_smi, nvidia_smi_dmon, nvidia_smi_q, dcgm, tegrastats, jtop, zeus, codecarbon, nvml_energy, rocm_smi)
DESKTOPS = (hardware_monitor, afterburner)
METERS = (yokogawa, hioki, joulescope, monsoon, otii, extech, ptdaemon, wattsup, tweet_a_watt)
LOGGERS = (lvm, tdms, picolog, timeseries)
OWN = (marks, characterization, memory_trace)
READERS: list[Reader] = [cast(Reader, module) for module in (*PROFILERS, *SENSORS, *DESKTOPS, *METERS, *LOGGERS, *OWN)]


def by_name(name: str) -> Reader:
    """Return the reader called ``name``."""
    for reader in READERS:
        if name == reader.NAME:
            return reader
    raise NotFoundError.near("format", name, [reader.NAME for reader in READERS])


def _matches(head: bytes) -> list[Reader]:
    head = Head(head)
    return [reader for reader in READERS if reader.sniff(head)]


def _only(matches: list[Reader], head: bytes, name: str | None) -> Reader:
    if len(matches) == 1:
        return matches[0]
    file = name or "the file"
    if matches:
        names = " and ".join(reader.NAME for reader in matches)
        raise UnknownFormatError(f"{file} looks like {names}; say which with --format NAME")
    raise refusal(head, name)


def detect(head: bytes, name: str | None = None) -> Reader:
    """Return the one reader that knows a file beginning with the decompressed bytes ``head``.

    ``name`` is the name of the file, for the error message. Raise `UnknownFormatError` if no reader, or more than
    one, knows it.
    """
    return _only(_matches(head), head, name)


def _detect_in(stream: BinaryIO, name: str | None) -> tuple[Reader, BinaryIO]:
    """Detect with a head that grows until a reader is sure: a table may follow megabytes of program output."""
    size = HEAD_BYTES
    while True:
        head, stream = peek(stream, size)
        matches = _matches(head)
        sure = [reader for reader in matches if not getattr(reader, "WHOLE_FILE", False)]
        if sure or len(head) < size or size >= MOST_HEAD_BYTES:
            return _only(matches, head, name), stream
        size *= 4


def _checked(batches: Iterator[Batch], notes: LineNotes) -> Iterator[Batch]:
    """Check each table, and complete the account by what the notes say of lines that the reader was not shown."""
    account = Account(notes)
    for batch in batches:
        for name, table in batch.tables.items():
            check(name, table)
        if batch.wide is not None:
            check_wide(batch.wide)
        yield account.passed(batch)
    if (last := account.last()) is not None:
        yield last


def read(
    stream: BinaryIO,
    format: str | None = None,  # noqa: A002
    name: str | None = None,
    columns: Sequence[Named] = (),
    limit: int | None = None,
) -> tuple[Reader, Iterator[Batch]]:
    """Read a file, compressed or not: return its reader and its batches, each table of them checked.

    ``format`` names the reader; without it the first bytes tell. ``name`` is the file's name, for error messages.
    ``columns`` say what the columns of a log are; such a file is read as a timeseries whatever it looks like.
    More than ``limit`` bytes, decompressed, are refused where they are reached.
    """
    if format is None:
        begin, stream = peek(stream, FOREIGN_BYTES)
        refuse_foreign(begin, name)
    stream = open_stream(stream, limit)
    if columns:
        return by_name(timeseries.NAME), _checked(timeseries.read(stream, columns), notes_of(stream))
    if format is not None:
        reader = by_name(format)
    else:
        reader, stream = _detect_in(stream, name)
    return reader, _checked(reader.read(stream), notes_of(stream))
