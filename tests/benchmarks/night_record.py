"""Recorded nights of an NVIDIA H200 with changes of known size: which are found, when, and what else is said.

Run it with ``python -m tests.benchmarks.night_record [FOLDER] [with_log]``. FOLDER is one of ``fixtures`` or a path.
``fixtures/night_record`` holds 80 nights, ``second`` is the 72 of ``fixtures/night_record_second``, ``third`` the 66
of ``fixtures/night_record_third``, ``fourth`` the 62 of ``fixtures/night_record_fourth``: the launches of 21 kernels,
20 a night. ``fifth`` is ``fixtures/night_record_fifth``: 22 kernels, 71 runs in 66 of 70 nights, and boards that stay
in one state for 1 to 9 nights. ``sixth`` has the same suite at 0.8 of its size, 67 runs in 62 of 66 nights, and
``seventh`` to ``tenth`` as many of 22 other kernels each. Half of the nights, or a third, begin on a board at its
power limit, whose clock is a fifth lower, the others on an idle one or one that is warm. ``with_log`` puts the
readings of nvidia-smi during each night into the same run. A change counts as found if a finding of its kernel appears
from its night on, and one that takes a kernel back if the finding before is called fixed; every other finding of a
kernel is listed as false, but for one that the report says to be part of a change of the board, and what is found of
the board as such. Beside each stand what it is part of and what else changed with it.
"""

import csv
import gzip
import io
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from profsvc import pipeline, store
from profsvc.pipeline.nightly import report_of_night
from tests.command_line import parser_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDERS = {
    name: f"night_record_{name}"
    for name in ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
}
BOARD = {"clock", "temperature"}  # kinds of findings and events of the board, whose state the record changed
FIRST = datetime(2026, 6, 1, 2, tzinfo=UTC)
TRACE = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name"
)


class Run(NamedTuple):
    """A run of the suite: its night, its number within the night, its launches and the readings during them."""

    night: int
    repeat: int
    trace: bytes
    log: bytes


def runs(record: Path) -> Iterator[Run]:
    """Yield the runs of a record in order: nights without one are missing, others have two."""
    for (night, repeat, trace), (marked, log) in zip(traces(record), logs(record), strict=True):
        assert (night, repeat) == marked, f"the marks tell of {marked}, the launches of {night, repeat}"
        yield Run(night, repeat, trace, log)


def traces(record: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield night, repeat, and the launches of each run as a trace of Nsight Systems."""
    with gzip.open(record / "launches.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for (night, repeat), rows in groupby(csv.DictReader(file), _run_of):
            lines = [
                f"{row['start_ns']},{row['duration_ns']},{number},{row['grid'].replace('x', ',')},"
                f"{row['block'].replace('x', ',')},{row['registers_per_thread']},"
                f"{int(row['static_shared_bytes']) / 1e6:.6f},0.000,,,,,NVIDIA H200 (0),1,7,{row['kernel']}"
                for number, row in enumerate(rows, 1)
            ]
            yield night, repeat, "\n".join([TRACE, *lines, ""]).encode()


def logs(record: Path) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield the readings of nvidia-smi during the launches of each run, and half a second around them."""
    with gzip.open(record / "power_smi.csv.gz", "rt", encoding="utf-8", newline="") as file:
        header, *readings = file.read().splitlines()
    stamps = (f"{line.split(',')[0]} +0000" for line in readings)
    times = [datetime.strptime(stamp, "%Y/%m/%d %H:%M:%S.%f %z").timestamp() for stamp in stamps]
    with (record / "marks.csv").open(encoding="utf-8", newline="") as file:
        spans = [row for row in csv.DictReader(file) if row["phase"] == "kernels"]
    for span in spans:
        begin, end = float(span["begin_unix_s"]) - 0.5, float(span["end_unix_s"]) + 0.5
        lines = [line for time, line in zip(times, readings, strict=True) if begin <= time <= end]
        yield _run_of(span), "\n".join([header, *lines, ""]).encode()


def _run_of(row: Mapping[str, str]) -> tuple[int, int]:
    return int(row["night"]), int(row.get("repeat") or 0)


class Change(NamedTuple):
    """What was changed of a kernel, from which night on."""

    kernel: str
    night: int
    what: str


def changes(record: Path) -> list[Change]:
    """Return the changes of a record, but for those of power alone."""
    with (record / "changes.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["what"] != "power"]
    return [Change(row["kernel"], int(row["night"]), f"{row['what']} x {row['factor']}") for row in rows]


def change_of(truth: Sequence[Change], kernel: str, night: int, found: Mapping[Change, int]) -> Change | None:
    """Return the newest change of a kernel that a finding of a night may be about, if it was not found before."""
    before = [one for one in truth if one.kernel == kernel and one.night <= night]
    return before[-1] if before and before[-1] not in found else None


def said(document: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return what a finding is part of, and what changed with it."""
    differences = (str(one["fact"]) for one in row["differences"] if one["part"] != "event")
    return ", ".join([*sorted(parts_of(document, row)), *differences])


def parts_of(document: Mapping[str, Any], row: Mapping[str, Any]) -> set[str]:
    """Return the kinds of the events that a finding is part of."""
    return {str(event["kind"]) for event in document["events"] if row["finding_id"] in event["findings"]}


def main(arguments: Sequence[str]) -> tuple[dict[str, int], int]:
    """Print what the reports of all nights find; return the night of the last finding per kernel, and the false."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", nargs="?", default="night_record", help="a folder of nights [%(default)s]")
    parser.add_argument("with_log", nargs="?", choices=["with_log"], help="read the logs of nvidia-smi too")
    asked = parser.parse_args(arguments)
    record = FIXTURES / FOLDERS.get(asked.folder, asked.folder)  # a whole path stays as it is
    truth, found, false = changes(record), dict[Change, int](), 0
    with tempfile.TemporaryDirectory() as folder:
        engine = store.open_store(str(Path(folder) / "store.sqlite"))
        for night, of_night in groupby(runs(record), lambda one: one.night):
            for one in of_night:
                at = f"{FIRST + timedelta(days=night, hours=one.repeat):%Y-%m-%dT%H:%M:%SZ}"
                name = f"night {night}" + " again" * one.repeat
                run = store.RunInfo(name=name, project="suite", started_at=at, at=at)
                pipeline.ingest(engine, io.BytesIO(one.trace), "trace.csv", run)
                if asked.with_log:
                    pipeline.ingest(engine, io.BytesIO(one.log), "nvidia_smi.csv", run)
            document = report_of_night(engine, "suite", at[:10])
            for row in document["findings"]:
                kernel = str(row["subject"])
                changed = change_of(truth, kernel, night, found)
                if changed is not None:
                    found[changed] = night
                words = "" if changed else "board" if BOARD & parts_of(document, row) else "false"
                words = row["quantity"] if str(row["kind"]) in BOARD else words
                false += words == "false"
                print(f"night {night:2} {kernel:16} {row['change']:+7.1%} {words:6}{said(document, row)}", flush=True)
            for kernel in {str(row["subject"]) for row in store.select(engine, "v1_findings", state="fixed")}:
                back = change_of(truth, kernel, night, found)
                if back is not None and any(one.kernel == kernel for one in found):
                    found[back] = night
                    print(f"night {night:2} {kernel:16} is back at its former level")
        engine.dispose()
    for one in truth:
        print(f"{one.kernel:16} {one.what:18} changed in night {one.night}, found in night {found.get(one, 'none')}")
    print(f"found {len(found)} of {len(truth)}, false findings {false}")
    return {one.kernel: night for one, night in found.items()}, false


if __name__ == "__main__":
    main(sys.argv[1:])
