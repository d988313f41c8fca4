"""Values of the metrics that are stored column by column."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.id_ranges import id_ranges
from profsvc.store.schema.contents.wide_metrics import MAX_BLOCK_LAUNCHES

Floats = npt.NDArray[np.float64]
Wanted = Callable[[str | None, str], str | None]


def wide_values(engine: Engine, launch_ids: Sequence[int], wanted: Wanted) -> dict[str, Floats]:
    """Return the values of the wanted metrics of these launches, in SI units, NaN where there is none.

    Only cells that are kept column by column; `profsvc.store.queries.frames.metrics` has the others. ``wanted``
    gives the name under which a metric of a section counts, None where it does not. Where two columns have one name,
    the first counts. A metric without any value is left out.
    """
    found: dict[str, Floats] = {}
    if not launch_ids:
        return found
    index = pd.Index(launch_ids)
    with reading(engine) as connection:
        blocks = [
            block
            for low, high in id_ranges(np.unique(launch_ids))
            for block in connection.execute(text(_BLOCKS), {"low": low - MAX_BLOCK_LAUNCHES + 1, "high": high})
        ]
        columns = {layout: _wanted_columns(connection, layout, wanted) for layout in {block[2] for block in blocks}}
        for first, launches, layout, first_cell in blocks:
            rows = index.get_indexer(pd.RangeIndex(first, first + launches))
            if (rows < 0).all():
                continue
            for metric, values in _values(connection, launches, first_cell, columns[layout]):
                whole = found.setdefault(metric, np.full(len(index), np.nan))
                known = whole[rows[rows >= 0]]
                whole[rows[rows >= 0]] = np.where(np.isnan(known), values[rows >= 0], known)
    return {metric: values for metric, values in found.items() if not np.isnan(values).all()}


_BLOCKS = """
    SELECT first_launch, launches, layout_id, first_cell FROM wide_blocks
    WHERE first_launch BETWEEN :low AND :high ORDER BY first_launch
"""


_COLUMNS = """
    SELECT c.place, n.section, n.metric, c.factor FROM wide_columns c JOIN metric_names n ON n.metric_id = c.metric_id
    WHERE c.layout_id = :layout_id ORDER BY c.place
"""


def _wanted_columns(connection: Connection, layout: int, wanted: Wanted) -> list[tuple[int, str, float]]:
    """Return place, name and factor of the wanted columns."""
    rows = connection.execute(text(_COLUMNS), {"layout_id": layout})
    named = ((place, wanted(section or None, metric), factor) for place, section, metric, factor in rows)
    return [(place, name, factor) for place, name, factor in named if name is not None]


def _values(
    connection: Connection, launches: int, first_cell: int, columns: list[tuple[int, str, float]]
) -> Iterator[tuple[str, Floats]]:
    """Yield the values of columns of a block, by the name of the metric."""
    if not columns:
        return
    numbers = ", ".join(str(first_cell + place) for place, *_ in columns)
    select = "SELECT cell_id, {} FROM {} WHERE cell_id IN ({})"
    constants = connection.exec_driver_sql(select.format("value", "wide_constants", numbers)).all()
    lists = "wide_cells c JOIN wide_lists t ON t.list_id = c.list_id"
    texts = connection.exec_driver_sql(select.format("texts", lists, numbers)).all()
    value_of: dict[int, float | None] = {row[0]: row[1] for row in constants}
    texts_of: dict[int, str] = {row[0]: row[1] for row in texts}
    for place, metric, factor in columns:
        if (value := value_of.get(first_cell + place)) is not None:
            yield metric, np.full(launches, value)
        elif cells := texts_of.get(first_cell + place):
            bare = cells.replace(",", "").split(" ")
            yield metric, np.array([float(cell) if cell else np.nan for cell in bare]) * factor
