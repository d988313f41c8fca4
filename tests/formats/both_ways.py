"""Readers that take whole blocks of rows at once, each beside its own way row by row: both must give the same.

`READERS` says of each what makes its blocks small enough for a test, and what keeps it from taking any.
"""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import pytest
from hypothesis import strategies as st

from profsvc import formats
from profsvc.errors import InputError
from profsvc.formats import generic_timeseries
from profsvc.formats.columnar import line_blocks
from profsvc.formats.daq import lvm, lvm_lines
from profsvc.formats.ncu import details, launches, raw, raw_blocks
from profsvc.formats.nsys import database, stats
from profsvc.formats.nvprof import csv_export, two_pass
from profsvc.formats.parsing.stream import open_stream
from profsvc.formats.pytorch import trace
from profsvc.formats.splitter import rows as splitter
from profsvc.formats.telemetry import nvidia_smi
from profsvc.formats.timeseries.tables import lines as table_lines
from profsvc.tables import Batch, check, check_wide
from tests.formats.conftest import long, rows_of
from tests.formats.fixtures import ROOT, files, good

Read = Callable[[BinaryIO], Iterable[Batch]]
Setting = tuple[ModuleType, str, object]


def not_at_once(*_: object) -> None:
    """A parser of blocks that leaves every block to the lines."""


def parts_taken(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[Any]:
    """Return the list of what a module parses at once from now on, None of a block that it leaves to the lines."""
    parts: list[Any] = []
    parse = module.parse
    monkeypatch.setattr(module, "parse", lambda *given: parts.append(parse(*given)) or parts[-1])
    return parts


def with_another_cell(rows: Sequence[str], cells: st.SearchStrategy[str], last: int) -> st.SearchStrategy[str]:
    """Draw one of the rows with one of the cells in it, at most at the place ``last``."""

    def changed(row: str, place: int, cell: str) -> str:
        own = row.rstrip("\n").split(",", last)
        return ",".join(cell if at == place else one for at, one in enumerate(own)) + "\n"

    return st.builds(changed, st.sampled_from(rows), st.integers(0, last), cells)


@dataclass(frozen=True)
class BlockReader:
    """A reader, the sizes of its blocks in a test, and the settings with which it takes none at once.

    Rows are compared in the ``order`` of these columns, because blocks and lines come in batches of other sizes.
    """

    read: Read
    files: Sequence[Path]
    sizes: Mapping[str, Setting]
    one_by_one: Sequence[Setting]
    order: Sequence[str] = ("line",)
    named_sensors: bool = False
    splits: bool = False

    def content(
        self, data: bytes, *, one_by_one: bool = False, read: Read | None = None, split: bool = True, **sizes: int
    ) -> Any:
        """All that a file says, or the words of its refusal; without ``split`` the compiled splitter is off."""
        with pytest.MonkeyPatch.context() as patch:
            if not split:
                patch.setenv(splitter.OFF_VARIABLE, "0")
            for name, (module, attribute, size) in self.sizes.items():
                patch.setattr(module, attribute, sizes.get(name, size))
            for setting in self.one_by_one if one_by_one else ():
                patch.setattr(*setting)
            try:
                batches = list((read or self.read)(io.BytesIO(data)))
            except InputError as error:
                return str(error)
        return self._tables(batches), *_account(batches)

    def agree(self, data: bytes, *, read: Read | None = None, **sizes: int) -> Any:
        """Return what a file says; it is the same when read at once in blocks of any size and row by row.

        Blocks are split by the compiled splitter, where a reader uses it and it is there, and without it.
        """
        found = self.content(data, read=read, **sizes)
        if self.splits and splitter.is_available():
            assert found == self.content(data, read=read, split=False, **sizes)
        assert found == self.content(data, one_by_one=True, read=read)
        return found

    def _tables(self, batches: Sequence[Batch]) -> dict[str, list[dict[str, Any]]]:
        for batch in batches:
            for name, rows in batch.given.items():
                check(name, rows)
            if batch.wide is not None:
                check_wide(batch.wide)
        tables = [long(batch).given for batch in batches]
        found: dict[str, list[dict[str, Any]]] = {}
        for name in sorted({name for some in tables for name in some}):
            parts = [some[name] for some in tables if name in some]
            columns = dict.fromkeys(column for part in parts for column in part.columns)
            empty = dict.fromkeys(map(str, columns))
            found[name] = [empty | row for part in parts for row in rows_of(part)]
        if self.named_sensors and "sensors" in found:
            # Sensors are numbered as they are met, which differs with the size of the blocks.
            known = {row["sensor_index"]: f"{row['name']} of {row['gpu_index']}" for row in found["sensors"]}
            for row in (row for rows in found.values() for row in rows if "sensor_index" in row):
                row["sensor_index"] = known.get(row["sensor_index"])
        for row in found.get("metrics", ()):
            row["unit"] = row["unit"] or None
        for rows in found.values():
            # What is missing comes last.
            order = [key for key in self.order if rows and key in rows[0]]
            rows.sort(key=lambda row, order=order: [(row[key] is None, row[key]) for key in order])
        return found


def _account(batches: Sequence[Batch]) -> tuple[list[int], dict[str, str], str]:
    lines = [sum(getattr(batch, f"lines_{kind}") for batch in batches) for kind in ("stored", "skipped", "rejected")]
    return lines, dict(batches[-1].facts), batches[-1].message


_SMALL: Setting = (line_blocks, "SMALL_BLOCK_BYTES", 1)
_IN_FILE = ("sensor_index", "sample_index", "line")
METER_FOLDERS = ("timeseries", "hioki", "joulescope", "monsoon", "otii", "picolog", "ppk2", "yokogawa")

READERS = {
    "kineto": BlockReader(
        trace.read,
        files("kineto"),
        {
            "small": (trace, "SMALL_BLOCK_CHARS", 1),
            "block": (trace, "BLOCK_CHARS", 600),
            "single": (trace, "MAX_SINGLE_EVENTS", 1),
        },
        [(trace, "parse", not_at_once)],
        order=(),
    ),
    "lvm": BlockReader(
        lvm.read,
        files("lvm"),
        {"small": (lvm_lines, "SMALL_BLOCK_BYTES", 30), "block": (lvm_lines, "BLOCK_BYTES", 400)},
        [(lvm, "parse", not_at_once)],
        order=_IN_FILE,
        splits=True,
    ),
    "meters": BlockReader(
        generic_timeseries.read,
        files(*METER_FOLDERS),
        {"small": (table_lines, "SMALL_BLOCK_BYTES", 40), "block": (table_lines, "BLOCK_BYTES", 500)},
        [(table_lines, "parse", not_at_once)],
        order=_IN_FILE,
    ),
    "ncu_details": BlockReader(
        details.read,
        [*good("ncu_details"), ROOT / "held_out" / "ncu_details.csv.gz"],
        {
            "small": _SMALL,
            "block": (details, "BLOCK_BYTES", 700),
            "rows": (details, "MIN_TABLE_ROWS", 5),
            "launches": (launches, "MAX_BATCH_LAUNCHES", 2),
        },
        [(details, "parse", not_at_once)],
        # What a range says of a launch has the line of its first metric, and may come in another batch.
        order=("line", "metric"),
        splits=True,
    ),
    "ncu_raw": BlockReader(
        raw.read,
        [*good("ncu_raw"), *sorted((ROOT / "demo").glob("*raw*"))],
        {
            "small": _SMALL,
            "block": (raw, "BLOCK_BYTES", 400),
            "first": (raw, "FIRST_BLOCK_BYTES", 100),
            "piece": (raw_blocks, "PIECE_BYTES", 50),
        },
        [(raw, "parse", not_at_once)],
    ),
    "nsys_database": BlockReader(
        database.read,
        sorted((ROOT / "nsys_sqlite").glob("*.sqlite")),
        {"few": (database, "MIN_BLOCK_ROWS", 1), "block": (database, "MAX_BLOCK_ROWS", 50)},
        [(database, "MIN_BLOCK_ROWS", 10**6)],
    ),
    "nsys_stats": BlockReader(
        stats.read,
        [path for path in files("nsys_stats") if not path.name.endswith((".json", ".txt"))],
        {"small": _SMALL, "first": (stats, "FIRST_BLOCK_BYTES", 300), "block": (stats, "BLOCK_BYTES", 700)},
        [(stats, "column_plan", not_at_once)],
        splits=True,
    ),
    "nvidia_smi": BlockReader(
        nvidia_smi.read,
        files("nvidia_smi"),
        {"small": (nvidia_smi, "SMALL_BLOCK_BYTES", 1), "block": (nvidia_smi, "BLOCK_BYTES", 600)},
        [(nvidia_smi, "parse", not_at_once)],
        order=(*_IN_FILE, "metric", "section"),
        named_sensors=True,
    ),
    "nvprof": BlockReader(
        csv_export.read,
        good("nvprof"),
        {"small": _SMALL, "first": (two_pass, "FIRST_BLOCK_BYTES", 300), "block": (two_pass, "BLOCK_BYTES", 700)},
        [(two_pass, "column_plan", not_at_once)],
        splits=True,
    ),
}


def detected(stream: BinaryIO) -> Iterable[Batch]:
    """Read a file with the reader that knows it."""
    return formats.read(stream)[1]


def unpacked(path: Path) -> bytes:
    """The bytes of a fixture; a database is opened as it is."""
    return path.read_bytes() if path.suffix == ".sqlite" else open_stream(path).read()
