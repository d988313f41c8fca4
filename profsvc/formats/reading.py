"""The registry of readers, which of them a file is for, and a file read by it."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol, cast

from profsvc.errors import NotFoundError, UnknownFormatError
from profsvc.formats import generic_timeseries
from profsvc.formats.columnar import table_files
from profsvc.formats.daq import lvm, picolog, tdms
from profsvc.formats.meters import (
    extech,
    hioki,
    joulescope,
    monsoon,
    otii,
    ppk2,
    ptdaemon,
    tweet_a_watt,
    wattsup,
    yokogawa,
)
from profsvc.formats.native import characterization, memory_trace, phase_marks
from profsvc.formats.ncu import (
    details as ncu_details,
)
from profsvc.formats.ncu import (
    nsight_python as ncu_python,
)
from profsvc.formats.ncu import (
    raw as ncu_raw,
)
from profsvc.formats.ncu import (
    report as ncu_report,
)
from profsvc.formats.ncu import (
    report_lines as ncu_report_lines,
)
from profsvc.formats.ncu import (
    session as ncu_session,
)
from profsvc.formats.ncu import (
    source as ncu_source,
)
from profsvc.formats.ncu import (
    summary as ncu_summary,
)
from profsvc.formats.ncu import (
    text as ncu_text,
)
from profsvc.formats.nsys import (
    database as nsys_database,
)
from profsvc.formats.nsys import (
    report as nsys_report,
)
from profsvc.formats.nsys import (
    stats as nsys_stats,
)
from profsvc.formats.nsys import (
    stats_json as nsys_stats_json,
)
from profsvc.formats.nsys import (
    stats_text as nsys_stats_text,
)
from profsvc.formats.nvprof import csv_export as nvprof_csv
from profsvc.formats.nvprof import text_export as nvprof_text
from profsvc.formats.parsing.head import Head
from profsvc.formats.parsing.line_account import LineCompletion
from profsvc.formats.parsing.rewritten import (
    OF_R,
    PREFIX,
    SEPARATED,
    Rewriting,
    has_prefix,
    processes_of,
    rewritings_of,
    undone,
)
from profsvc.formats.parsing.stream import open_stream, peek
from profsvc.formats.parsing.text import LineNotes, line_notes
from profsvc.formats.pytorch import trace as pytorch_trace
from profsvc.formats.rocm import rocpd, rocprof, rocprof_v1_database
from profsvc.formats.telemetry import (
    afterburner,
    codecarbon,
    dcgm,
    hardware_monitor,
    jtop,
    nvidia_smi,
    nvidia_smi_dmon,
    nvidia_smi_q,
    nvidia_smi_stats,
    nvml_energy,
    prometheus,
    rocm_smi,
    tegrastats,
    zeus,
)
from profsvc.formats.timeseries.column_mapping import NamedColumn
from profsvc.formats.triton import proton
from profsvc.formats.unrecognized import SQLITE, refuse_archive, refuse_foreign, unrecognized_error
from profsvc.tables import Batch, check, check_wide

HEAD_BYTES = 256 << 10
MAX_HEAD_BYTES = 16 << 20
FOREIGN_BYTES = 512


class Reader(Protocol):
    """The interface of a reader module."""

    NAME: str

    def sniff(self, head: bytes) -> bool:
        """Tell whether a file that begins with ``head`` has this format."""

    def read(self, stream: BinaryIO) -> Iterator[Batch]:
        """Read a decompressed file."""


PROFILERS = (
    *(ncu_raw, ncu_details, ncu_text, ncu_summary, ncu_session, ncu_source, ncu_report, ncu_report_lines),
    ncu_python,
    *(nvprof_csv, nvprof_text, nsys_stats, nsys_stats_text, nsys_stats_json, nsys_database, pytorch_trace),
    proton,
    *(rocprof, rocprof_v1_database, rocpd),
)
SENSORS = (
    nvidia_smi,
    nvidia_smi_dmon,
    nvidia_smi_q,
    nvidia_smi_stats,
    dcgm,
    prometheus,
    tegrastats,
    jtop,
    zeus,
    codecarbon,
    nvml_energy,
    rocm_smi,
)
DESKTOPS = (hardware_monitor, afterburner)
METERS = (yokogawa, hioki, joulescope, monsoon, ppk2, otii, extech, ptdaemon, wattsup, tweet_a_watt)
LOGGERS = (lvm, tdms, picolog, generic_timeseries)
NATIVE = (phase_marks, characterization, memory_trace)
# Texts below whose banners a table of the same tool may stand.
_TEXTS = (ncu_text, nvprof_text)
# Formats with any separator, those without one, and those whose refusals name it.
_OWN_SEPARATORS = (generic_timeseries, nsys_stats_text, *_TEXTS, *NATIVE)
READERS: list[Reader] = [
    cast(Reader, module) for module in (*PROFILERS, *SENSORS, *DESKTOPS, *METERS, *LOGGERS, *NATIVE)
]
_DATABASES = [cast(Reader, module) for module in (nsys_database, rocprof_v1_database, rocpd)]


def by_name(name: str) -> Reader:
    """Return the reader called ``name``."""
    for reader in READERS:
        if name == reader.NAME:
            return reader
    raise NotFoundError.near("format", name, [reader.NAME for reader in READERS])


def _matches(head: bytes) -> list[Reader]:
    # Rows of a database may hold the lines of an export, such as the texts of a store of profsvc itself.
    readers = _DATABASES if head.startswith(SQLITE) else READERS
    head = Head(head)
    return [reader for reader in readers if reader.sniff(head)]


def _single_match(matches: list[Reader], head: bytes, name: str | None) -> Reader:
    tool = _resaved(head) if not matches or matches[0] in _TEXTS else ""
    if matches and not tool.startswith(matches[0].NAME.partition("-")[0]):
        tool = ""
    if len(matches) == 1 and not tool:
        return matches[0]
    file = name or "the file"
    if matches and not tool and all(reader.NAME.startswith("nsys-") for reader in matches):
        raise UnknownFormatError(
            f"{file} has reports of nsys stats in several forms, and one form is read; print them in one, such as: "
            "nsys stats --format csv REPORT.nsys-rep, or each into a file of its own"
        )
    if matches and not tool:
        names = " and ".join(reader.NAME for reader in matches)
        raise UnknownFormatError(f"{file} looks like {names}; choose one with --format NAME")
    if tool:
        raise UnknownFormatError(
            f"{file} has the columns of {tool} with other separators than commas, as a spreadsheet writes them; "
            f"upload the file that the tool wrote, or save it with commas between the cells and points in the numbers"
        )
    raise unrecognized_error(head, name)


def _resaved(head: bytes) -> str:
    """Return the format that a file with commas in the place of its separators would have; empty if it has none."""
    for sign in (b";", b"\t"):
        matches = _matches(head.replace(sign, b",")) if sign in head else []
        if len(matches) == 1 and matches[0] not in _OWN_SEPARATORS:
            return matches[0].NAME
    return ""


def _rewriting(head: bytes, matches: list[Reader], name: str | None) -> tuple[Rewriting, Reader] | None:
    """Return how another program saved an export again, and its reader; None for a file as its tool wrote it."""
    prefixed = has_prefix(head) and (not matches or matches[0] in PROFILERS)
    if not prefixed and matches and matches[0] not in (*_TEXTS, nsys_stats):
        return None
    for one, before, headers in rewritings_of(head):
        found = _matches(before)
        if len(found) != 1 or (found[0] in _TEXTS and one is not PREFIX):
            continue
        if one in (*OF_R, *SEPARATED) and found[0] not in SENSORS:
            continue
        # The last line of the head may be cut.
        if one in SEPARATED and any(one.undo(line) == line for line in head.splitlines()[:-1] if line.strip()):
            continue
        if found != matches or one is PREFIX or found[0].sniff(headers):
            if one is PREFIX and len(processes := processes_of(head)) > 1:
                raise _several_processes(processes, name or "FILE")
            return one, found[0]
    return None


def _several_processes(prefixes: list[bytes], name: str) -> UnknownFormatError:
    first, second = (prefix.decode("latin-1").strip() for prefix in prefixes[:2])
    command = f"grep {shlex.quote('^' + re.escape(first))} {shlex.quote(name)} | profsvc upload - --run NAME"
    return UnknownFormatError(
        f"{name} has lines of several processes ({first!r}, {second!r}, ...), so their tables are mixed; upload the "
        f"lines of each: {command}"
    )


def detect(head: bytes, name: str | None = None) -> Reader:
    """Return the reader of a file that begins with the decompressed bytes ``head``.

    ``name`` is the name of the file, for the error message. Raise `UnknownFormatError` unless exactly one reader
    recognizes it.
    """
    return _single_match(_matches(head), head, name)


def _detect_in(stream: BinaryIO, name: str | None) -> tuple[Reader, BinaryIO, str]:
    """Detect the format with a growing head, because a table may follow megabytes of program output.

    Return the reader, the lines as its tool wrote them, and how another program saved them again.
    """
    size = HEAD_BYTES
    while True:
        head, stream = peek(stream, size)
        matches = _matches(head)
        certain = [reader for reader in matches if not getattr(reader, "WHOLE_FILE", False)]
        if certain or len(head) < size or size >= MAX_HEAD_BYTES:
            if rewritten := _rewriting(head, matches, name):
                return rewritten[1], undone(stream, rewritten[0]), rewritten[0].words
            return _single_match(matches, head, name), stream, ""
        size *= 4


def _detect_table(stream: BinaryIO, saved_as: str, name: str) -> tuple[Reader, BinaryIO]:
    """Detect the format of a table that a file of another format holds; where it is not known, say how to see it."""
    try:
        return _detect_in(stream, f"{name}.csv")[:2]
    except UnknownFormatError as error:
        command = table_files.as_text_command(saved_as, name)
        raise UnknownFormatError(f"{error}; {name}.csv is what this makes of the {saved_as} file: {command}") from None


def _checked(batches: Iterator[Batch], notes: LineNotes, rewritten: str = "") -> Iterator[Batch]:
    """Check each table, and complete the line counts with the lines that the reader did not see.

    ``rewritten`` is how another program saved the file again.
    """
    lines = LineCompletion(notes)
    for batch in batches:
        for name, table in batch.given.items():
            check(name, table)
        if batch.wide is not None:
            check_wide(batch.wide)
        yield lines.complete(batch)
    if (last := lines.last()) is not None:
        yield last
    if rewritten:
        yield Batch(facts={"saved_again_with": rewritten})


def read(
    stream: BinaryIO,
    format: str | None = None,  # noqa: A002
    name: str | None = None,
    columns: Sequence[NamedColumn] = (),
    limit: int | None = None,
) -> tuple[Reader, Iterator[Batch]]:
    """Return the reader and the batches of a file, compressed or not; each table is checked.

    ``format`` names the reader; without it the first bytes decide. ``name`` is the name of the file, for error
    messages. ``columns`` map the columns of a log, which is then read as a timeseries. A file with more than
    ``limit`` decompressed bytes is refused.
    """
    begin, stream = peek(stream, FOREIGN_BYTES)
    if format is None:
        if nsys_report.can_export(begin, name):
            batches = nsys_report.read(stream, str(name), limit)
            return by_name(nsys_database.NAME), _checked(batches, line_notes(stream))
        refuse_foreign(begin, name)
    refuse_archive(begin, name)
    begin, stream = peek(open_stream(stream, limit), FOREIGN_BYTES)
    refuse_archive(begin, name)  # packed once more
    stream, saved_as = table_files.as_text(stream, limit) if format != memory_trace.NAME else (stream, "")
    if columns:
        reader, batches = by_name(generic_timeseries.NAME), generic_timeseries.read(stream, columns)
        return reader, _checked(batches, line_notes(stream), saved_as)
    if format is not None:
        reader = by_name(format)
    elif saved_as:
        reader, stream = _detect_table(stream, saved_as, name or "FILE")
    else:
        reader, stream, saved_as = _detect_in(stream, name)
    return reader, _checked(reader.read(stream), line_notes(stream), saved_as)
