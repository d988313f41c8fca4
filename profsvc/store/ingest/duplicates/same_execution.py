"""Launches of one execution in files of different tools, such as a profile of some of them and a trace of all."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.analysis.counters.same_launches import (
    UNKNOWN,
    Ints,
    Lane,
    LaunchMatch,
    LaunchSequence,
    find_launches,
    surplus_token,
)
from profsvc.store.connection.sql import Connection, bindparam, text
from profsvc.store.ingest.duplicates.report_pages import LaunchFile

ROWS_PER_FETCH = 100_000
MAX_LISTED_IDS = 500
COLUMNS = 7
HOST_FACTOR = 1 << 40
# Odd, and without a pattern: sums of what they multiply differ where the numbers do.
HASH_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)

_KERNELS = text("""
    SELECT t.upload_id, k.kernel_id, k.kernel_short, t.launches FROM kernel_totals t
    JOIN kernels k ON k.kernel_id = t.kernel_id WHERE t.upload_id IN :uploads
""").bindparams(bindparam("uploads", expanding=True))
_LAUNCHES = """
    SELECT l.launch_id, l.place_id, l.shape_id, coalesce(l.grid_x, -1), coalesce(l.grid_y, -1), coalesce(l.grid_z, -1),
           coalesce(l.start_ns, -1)
    FROM launches l{} WHERE l.launch_id BETWEEN :first AND :last ORDER BY l.launch_id
"""
_AMONG = " JOIN shapes h ON h.shape_id = l.shape_id AND h.kernel_id IN ({})"
_SHAPES = text("""
    SELECT h.shape_id, h.kernel_id, k.kernel, k.kernel_short, coalesce(h.block_x, -1), coalesce(h.block_y, -1),
           coalesce(h.block_z, -1)
    FROM shapes h JOIN kernels k ON k.kernel_id = h.kernel_id WHERE h.shape_id IN :numbers
""").bindparams(bindparam("numbers", expanding=True))
_PLACES = text("""
    SELECT place_id, coalesce(host_id, 0), coalesce(process_id, -1), coalesce(device_index, -1), coalesce(context, -1),
           coalesce(stream, -1)
    FROM places WHERE place_id IN :numbers
""").bindparams(bindparam("numbers", expanding=True))
# Other tools, such as PyTorch, measure GPUs of several vendors.
VENDORS = {"ncu": "NVIDIA", "nsys": "NVIDIA", "nvprof": "NVIDIA", "rocprof": "AMD"}


class _Read(NamedTuple):
    """Launches of a file in the order in which they began; ``kind`` numbers ``kinds``: shape and grid."""

    launch_id: Ints
    place: Ints
    kind: Ints
    kinds: list[tuple[int, ...]]


class Kernels:
    """The kernels of files, and how often each has them."""

    def __init__(self, connection: Connection, uploads: Iterable[int]) -> None:
        """Look them up."""
        self.full: dict[int, Counter[int]] = {}
        self.short: dict[int, Counter[str]] = {}
        for upload_id, kernel_id, short, launches in connection.execute(_KERNELS, {"uploads": list(uploads)}):
            self.full.setdefault(upload_id, Counter())[kernel_id] += launches
            self.short.setdefault(upload_id, Counter())[short] += launches

    def shared(self, few: LaunchFile, many: LaunchFile) -> bool:
        """Tell whether two files have a kernel in common, by its short name."""
        return bool(self.short[few.upload_id].keys() & self.short[many.upload_id].keys())

    def may_contain(self, few: LaunchFile, many: LaunchFile) -> bool:
        """Tell whether a file has each kernel of another at least as often, by its short name."""
        held = self.short[many.upload_id]
        return all(launches <= held[short] for short, launches in self.short[few.upload_id].items())

    def by_full_name(self, few: LaunchFile, many: LaunchFile) -> bool:
        """Tell whether both tools write names alike, so that full names tell kernels apart."""
        return self.full[few.upload_id].keys() <= self.full[many.upload_id].keys()


def same_execution(
    connection: Connection, few: LaunchFile, many: LaunchFile, kernels: Kernels
) -> tuple[Ints, Ints, bool] | str:
    """Return the launches of a file, those of another that they are, and whether only these can be meant.

    Where they are not all in the other file, return why.
    """
    vendors = VENDORS.get(few.tool), VENDORS.get(many.tool)
    if None not in vendors and vendors[0] != vendors[1]:
        return f"{few.tool} measures GPUs of {vendors[0]}, and {many.tool} those of {vendors[1]}"
    held = kernels.short[many.upload_id]
    for short, launches in kernels.short[few.upload_id].items():
        if launches > held[short]:
            return f"it has {short} {_times(launches)}, that file {_times(held[short])}"
    names = kernels.short[few.upload_id]
    wanted = [number for number in kernels.full[many.upload_id] if len(kernels.full[many.upload_id]) > len(names)]
    own, other = _read(connection, few, ()), _read(connection, many, _with_short_names(connection, wanted, names))
    return _found(connection, own, other, by_full_name=kernels.by_full_name(few, many))


def _times(count: int) -> str:
    return "never" if not count else "once" if count == 1 else f"{count:,} times"


def _with_short_names(connection: Connection, kernel_ids: list[int], names: Iterable[str]) -> list[int]:
    """Return those of these kernels that have one of the short names."""
    if not kernel_ids:
        return []
    query = text("SELECT kernel_id, kernel_short FROM kernels WHERE kernel_id IN :numbers")
    rows = connection.execute(query.bindparams(bindparam("numbers", expanding=True)), {"numbers": kernel_ids})
    wanted = set(names)
    return [kernel_id for kernel_id, short in rows if short in wanted]


def _read(connection: Connection, file: LaunchFile, kernel_ids: Iterable[int]) -> _Read:
    """Read the launches of a file, of all kernels or of these."""
    listed = list(kernel_ids)
    among = _AMONG.format(", ".join(map(str, listed))) if 0 < len(listed) <= MAX_LISTED_IDS else ""
    query = text(_LAUNCHES.format(among)).execution_options(stream_results=True)
    result = connection.execute(query, file.bounds)
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    known: dict[int, int] = {}
    kinds: list[tuple[int, ...]] = []
    # SQLite's own tuples come in two thirds of the time.
    source: Any = result.cursor if connection.dialect.name == "sqlite" else result
    while rows := source.fetchmany(ROWS_PER_FETCH):
        cells = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * COLUMNS).reshape(-1, COLUMNS)
        with np.errstate(over="ignore"):
            mixed, first, codes = np.unique(
                cells[:, 2:6].astype(np.uint64) @ HASH_FACTORS, return_index=True, return_inverse=True
            )
        for code, at in zip(mixed.tolist(), first.tolist(), strict=True):
            if code not in known:
                known[code] = len(kinds)
                kinds.append(tuple(cells[at, 2:6].tolist()))
        numbers = np.array([known[code] for code in mixed.tolist()], np.int32)
        parts.append((cells[:, 0].copy(), cells[:, 1].astype(np.int32), numbers[codes], cells[:, 6].copy()))
    result.close()
    if not parts:
        parts = [tuple(np.empty(0, np.int64) for _ in range(4))]
    launch_id, place, kind, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    if (start >= 0).all() and (np.diff(start) < 0).any():
        order = np.argsort(start, kind="stable")
        launch_id, place, kind = launch_id[order], place[order], kind[order]
    return _Read(launch_id, place, kind, kinds)


def _found(connection: Connection, own: _Read, other: _Read, *, by_full_name: bool) -> tuple[Ints, Ints, bool] | str:
    both = own, other
    numbers = {kind[0] for read in both for kind in read.kinds}
    shapes = {row[0]: tuple(row[1:]) for row in _looked_up(connection, _SHAPES, numbers)}
    # A tool that says no grid or block of some launch says too little to compare any by it.
    geometry = all(UNKNOWN not in (*kind[1:], *shapes[kind[0]][3:]) for read in both for kind in read.kinds)
    tokens: dict[tuple[Any, ...], int] = {}
    names: list[str] = []
    told = []
    for read in both:
        codes = []
        for shape_id, *grid in read.kinds:
            kernel_id, kernel, short, *block = shapes[shape_id]
            token = (kernel_id if by_full_name else short, *((*grid, *block) if geometry else ()))
            if token not in tokens:
                tokens[token] = len(names)
                names.append(f"{kernel if by_full_name else short}{_size(grid, block) if geometry else ''}")
            codes.append(tokens[token])
        told.append(LaunchSequence(np.array(codes, np.int64)[read.kind], read.place, _lanes(connection, read.place)))
    few, many = told
    wanted = np.isin(many.token, np.unique(few.token))
    many, at = LaunchSequence(many.token[wanted], many.place[wanted], many.lanes), other.launch_id[wanted]
    found: LaunchMatch | None = find_launches(few, many)
    if found is not None:
        return own.launch_id, at[found.at], found.alone
    if (lacking := surplus_token(few.token, many.token)) is not None:
        name, here, there = lacking
        return f"it has {names[name]} {_times(here)}, that file {_times(there)}"
    return "the streams of that file execute these kernels in another order"


def _size(grid: Iterable[int], block: Iterable[int]) -> str:
    blocks, threads = (", ".join(map(str, size)) for size in (grid, block))
    return f" <<<({blocks}), ({threads})>>>"


def _lanes(connection: Connection, place: Ints) -> dict[int, Lane]:
    rows = _looked_up(connection, _PLACES, np.unique(place).tolist())
    several = len({row[1] for row in rows}) > 1
    return {
        number: (process + HOST_FACTOR * host if several and process != UNKNOWN else process, *rest)
        for number, host, process, *rest in rows
    }


def _looked_up(connection: Connection, query: Any, numbers: Iterable[int]) -> list[Any]:
    listed, rows = sorted(numbers), list[Any]()
    for begin in range(0, len(listed), MAX_LISTED_IDS):
        rows += connection.execute(query, {"numbers": listed[begin : begin + MAX_LISTED_IDS]}).all()
    return rows
