"""The rows of ``v1_metrics`` without asking the view for each: a block of cells is read as it is stored, and unpacked.

`profsvc.store.ingest.writers.wide_metrics` describes blocks, layouts, lists and constants, and
`profsvc.store.schema.contents.launch_views` the view. Unpacking a block here takes a fraction of what the view
takes, which computes each number from its text by SQL. A test holds the rows equal to the view's, bit for bit.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from profsvc.store.connection.sql import Connection, Engine, bindparam, text
from profsvc.store.connection.transactions import reading
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.contents.launch_views import VIEW_DEFINITIONS
from profsvc.store.schema.contents.wide_metrics import MAX_DIGITS
from profsvc.store.schema.view_definition import counted_once

CELLS_PER_TABLE = 200_000
BLOCKS_PER_TABLE = 1_000
Ints = npt.NDArray[np.int64]

_UPLOADS = f"""
    SELECT u.upload_id, u.run_id, u.same_as FROM uploads u
    WHERE u.run_id IN :runs AND {counted_once("metrics")} ORDER BY u.upload_id
"""
_BLOCKS = """
    SELECT b.first_launch, b.launches, b.layout_id, b.first_cell,
           (SELECT count(*) FROM wide_columns c WHERE c.layout_id = b.layout_id) AS width
    FROM wide_blocks b WHERE b.first_launch >= :first AND b.first_launch < :end ORDER BY b.first_cell
"""
_IN_RANGE = "l.launch_id >= :first AND l.launch_id < :end"
# By the number of a launch: the number that it has in the view, its line, and its kernel.
_LAUNCHES = f"""
    SELECT l.launch_id, l.launch_id AS shown_id, l.line, k.kernel, k.kernel_short
    FROM launches l JOIN shapes h ON h.shape_id = l.shape_id JOIN kernels k ON k.kernel_id = h.kernel_id
    WHERE {_IN_RANGE} ORDER BY l.launch_id
"""
_TWINS = f"""
    SELECT l.launch_id, o.first_id AS shown_id, l.line, k.kernel, k.kernel_short
    FROM twins o JOIN launches l ON l.launch_id = o.launch_id JOIN launches f ON f.launch_id = o.first_id
    JOIN shapes h ON h.shape_id = f.shape_id JOIN kernels k ON k.kernel_id = h.kernel_id
    WHERE {_IN_RANGE} ORDER BY l.launch_id
"""
_COLUMNS = """
    SELECT c.layout_id, c.place, NULLIF(n.section, '') AS section, n.metric, NULLIF(i.unit, '') AS unit,
           NULLIF(i.si_unit, '') AS si_unit, c.factor
    FROM wide_columns c JOIN metric_names n ON n.metric_id = c.metric_id JOIN unit_names i ON i.unit_id = c.unit_id
    WHERE c.layout_id IN :layouts ORDER BY c.layout_id, c.place
"""
_IN_CELLS = "w.cell_id >= :first AND w.cell_id < :end ORDER BY w.cell_id"
_CONSTANTS = f"SELECT cell_id, lines, raw_text, value, reason FROM wide_constants w WHERE {_IN_CELLS}"
_CELLS = f"""
    SELECT w.cell_id, w.lines, t.texts, t.ending FROM wide_cells w JOIN wide_lists t ON t.list_id = w.list_id
    WHERE {_IN_CELLS}
"""
_POWERS = np.array([float(10**power) for power in range(MAX_DIGITS + 1)])


def long_metrics_queries() -> list[str]:
    """Return the queries for the rows of the view that are rows of ``metrics``, by the run ``u.run_id``."""
    definition = VIEW_DEFINITIONS["v1_metrics"]
    sources = [(definition.source, dict[str, str]()), definition.others[0]]
    return [
        f"SELECT {', '.join(f'{other.get(name, sql)} AS {name}' for name, _, sql, _ in definition.columns)} FROM {rows}"
        for rows, other in sources
    ]


def rows_of_blocks(engine: Engine, runs: Sequence[int], schema: Any) -> Iterator[Any]:
    """Yield the rows of the view that blocks contain, as tables of this schema; some hundred thousand at a time."""
    with reading(engine) as connection:
        query = text(_UPLOADS).bindparams(bindparam("runs", expanding=True))
        uploads = connection.execute(query, {"runs": list(runs)}).all()
    for upload_id, run_id, same_as in uploads:
        first = upload_id * IDS_PER_UPLOAD
        with reading(engine) as connection:
            blocks = connection.execute(text(_BLOCKS), {"first": first, "end": first + IDS_PER_UPLOAD}).all()
            for some in _batches(blocks):
                unpacked = _unpacked(connection, some, _LAUNCHES if same_as is None else _TWINS)
                for columns in unpacked:
                    yield _table(schema, columns, {"run_id": run_id, "upload_id": upload_id})


def _batches(blocks: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield blocks that follow each other, of limited size together."""
    some, cells = list[Any](), 0
    for block in blocks:
        some.append(block)
        cells += block.launches * block.width
        if cells >= CELLS_PER_TABLE or len(some) == BLOCKS_PER_TABLE:
            yield some
            some, cells = [], 0
    if some:
        yield some


def _table(schema: Any, columns: dict[str, Any], same: dict[str, int]) -> Any:
    rows = len(columns["launch_id"])
    arrays = []
    for field in schema:
        if field.name in same:
            arrays.append(pa.array(np.full(rows, same[field.name], np.int64)))
        elif field.name in columns:
            arrays.append(columns[field.name].cast(field.type))
        else:
            arrays.append(pa.nulls(rows, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


class _Blocks(NamedTuple):
    """Blocks, the launches that they are of, and their columns, in the order of their numbers."""

    first_launch: Ints
    launches: Ints
    layout: Ints
    first_cell: Ints
    launch_ids: Ints
    of_launch: dict[str, Any]
    column_keys: Ints
    of_column: dict[str, Any]
    factors: npt.NDArray[np.float64]


def _unpacked(connection: Connection, blocks: list[Any], launches: str) -> Iterator[dict[str, Any]]:
    """Yield the columns of the rows of some blocks: of the constants, and of the other cells."""
    end_cell = max(block.first_cell + block.width for block in blocks)
    bounds = {
        "first": min(block.first_launch for block in blocks),
        "end": max(block.first_launch + block.launches for block in blocks),
    }
    of_launch = _read(connection, launches, bounds)
    layouts = text(_COLUMNS).bindparams(bindparam("layouts", expanding=True))
    of_column = _read(connection, layouts, {"layouts": sorted({block.layout_id for block in blocks})})
    place = _ints(of_column["place"])
    known = _Blocks(
        _ints([block.first_launch for block in blocks]),
        _ints([block.launches for block in blocks]),
        _ints([block.layout_id for block in blocks]),
        _ints([block.first_cell for block in blocks]),
        _ints(of_launch["launch_id"]),
        of_launch,
        _ints(of_column["layout_id"]) * IDS_PER_UPLOAD + place,
        of_column,
        np.array(of_column["factor"], np.float64),
    )
    cells = {"first": blocks[0].first_cell, "end": end_cell}
    if (constants := _read(connection, _CONSTANTS, cells))["cell_id"]:
        yield _constant_rows(known, constants)
    if (lists := _read(connection, _CELLS, cells))["cell_id"]:
        yield _cell_rows(known, lists)


def _read(connection: Connection, query: Any, values: dict[str, Any]) -> dict[str, Sequence[Any]]:
    result = connection.execute(text(query) if isinstance(query, str) else query, values)
    names, rows = list(result.keys()), result.all()
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())


def _ints(cells: Sequence[Any]) -> Ints:
    return np.array(cells, np.int64)


def _constant_rows(blocks: _Blocks, constants: dict[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the rows of constants: one for every launch of their block."""
    cell_ids = _ints(constants["cell_id"])
    counts = blocks.launches[_block_of(blocks, cell_ids)]
    cell = np.repeat(np.arange(len(cell_ids)), counts)
    found, kept = _common_columns(blocks, cell_ids, constants["lines"], cell, counts)
    cell = pa.array(cell[kept])
    reason = pa.array(constants["reason"], pa.string()).dictionary_encode().take(cell)
    return found | {
        "raw_text": pa.array(constants["raw_text"], pa.string()).take(cell),
        "value": pa.array(constants["value"], pa.float64()).take(cell),
        "reason": reason,
        "si_unit": pc.if_else(reason.is_null(), found["si_unit"], pa.scalar(None, found["si_unit"].type)),
    }


def _cell_rows(blocks: _Blocks, lists: dict[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the rows of cells that differ among the launches of their block; an empty text has no row."""
    cell_ids = _ints(lists["cell_id"])
    split = pc.split_pattern(pa.array(lists["texts"], pa.string()), " ")
    counts = np.diff(split.offsets.to_numpy()).astype(np.int64)
    cell = np.repeat(np.arange(len(cell_ids)), counts)
    texts = split.flatten()
    present = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
    found, kept = _common_columns(blocks, cell_ids, lists["lines"], cell, counts, present)
    texts, cell = texts.filter(pa.array(kept)), cell[kept]
    point = pc.find_substring(texts, ".").to_numpy()
    behind = np.where(point < 0, 0, pc.utf8_length(texts).to_numpy() - point - 1)
    plain = pc.replace_substring(pc.replace_substring(texts, ",", ""), ".", "")
    whole = plain.cast(pa.int64()).to_numpy().astype(np.float64)
    factors = blocks.factors[_column_of(blocks, cell_ids)[cell]]
    return found | {
        "raw_text": _with_endings(texts, lists["ending"], cell, point, behind),
        "value": pa.array(whole / _POWERS[behind] * factors),
    }


def _with_endings(texts: Any, endings: Sequence[str], cell: Ints, point: Ints, behind: Ints) -> Any:
    """Return the texts with the zeros that all of their list had at the end.

    An ending is a point and the zeros of a whole number. A text with two decimals lacks what is behind the second zero.
    """
    if not any(endings):
        return texts
    distinct = sorted(set(endings))
    number = np.array([distinct.index(ending) for ending in endings])[cell]
    most = max(map(len, distinct))
    has = np.where(point < 0, 0, behind + 1)  # letters of the ending that the text has
    rest = pa.array([ending[begin:] for ending in distinct for begin in range(most + 1)])
    return pc.binary_join_element_wise(texts, rest.take(pa.array(number * (most + 1) + np.minimum(has, most))), "")


def _block_of(blocks: _Blocks, cell_ids: Ints) -> Ints:
    return np.searchsorted(blocks.first_cell, cell_ids, side="right") - 1


def _column_of(blocks: _Blocks, cell_ids: Ints) -> Ints:
    block = _block_of(blocks, cell_ids)
    keys = blocks.layout[block] * IDS_PER_UPLOAD + cell_ids - blocks.first_cell[block]
    return np.searchsorted(blocks.column_keys, keys)


def _common_columns(
    blocks: _Blocks,
    cell_ids: Ints,
    lines: Sequence[str | None],
    cell: Ints,
    counts: Ints,
    present: npt.NDArray[np.bool_] | None = None,
) -> tuple[dict[str, Any], npt.NDArray[np.bool_]]:
    """Return the columns that launch and metric tell, and which of the cells' rows there are at all.

    ``cell`` is the cell of each row, by its place in ``cell_ids``, and ``counts`` the rows of each cell.
    """
    after = np.arange(len(cell)) - np.repeat(np.cumsum(counts) - counts, counts)
    launch_ids = blocks.first_launch[_block_of(blocks, cell_ids)][cell] + after
    launch = np.searchsorted(blocks.launch_ids, launch_ids)
    launch[launch == len(blocks.launch_ids)] = 0
    kept = blocks.launch_ids[launch] == launch_ids if len(blocks.launch_ids) else np.zeros(len(cell), np.bool_)
    if present is not None:
        kept &= present
    launch, cell, after = launch[kept], cell[kept], after[kept]
    column = pa.array(_column_of(blocks, cell_ids)[cell])
    found = {
        name: pa.array(cells, pa.string()).dictionary_encode().take(index)
        for known, index, names in (
            (blocks.of_launch, pa.array(launch), ("kernel", "kernel_short")),
            (blocks.of_column, column, ("section", "metric", "unit", "si_unit")),
        )
        for name in names
        for cells in [known[name]]
    }
    line = _ints(blocks.of_launch["line"])[launch] + _lines_below(lines, cell, after)
    shown = _ints(blocks.of_launch["shown_id"])[launch]
    return found | {"launch_id": pa.array(shown), "line": pa.array(line)}, kept


def _lines_below(lines: Sequence[str | None], cell: Ints, after: Ints) -> Ints:
    """Return how many lines below the first of its launch each row stands: none, one number, or one per launch."""
    below = np.zeros(len(lines), np.int64)
    several = {}
    for number, said in enumerate(lines):
        if said is not None and said.startswith(" "):
            several[number] = _ints(said.split())
        elif said is not None:
            below[number] = int(said)
    found = below[cell]
    for number, each in several.items():
        mine = slice(*np.searchsorted(cell, [number, number + 1]))
        found[mine] = each[after[mine]]
    return found
