"""What was simulated of memory traces, written for a file."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import insert

from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import lock_existing_row, writing
from profsvc.store.ingest.inserts.row_insert import insert_rows
from profsvc.store.ingest.runs import count_change
from profsvc.store.schema.results.memory_traces import HIT_RATIOS
from profsvc.store.schema.tables import metadata


def save_trace(
    engine: Engine,
    upload_id: int,
    about: Mapping[str, Any],
    draws: Iterable[Sequence[float]] = (),
    sites: Iterable[tuple[str, int, float, float, float]] = (),
) -> None:
    """Write what was simulated of a trace, in place of what was there.

    ``about`` are the columns of the table ``traces``; a draw is its ratios and the lines that DRAM moved; a site is its
    name, its requests, lines of a request, and hit ratios in L1 and L2. NaN is stored as null.
    """
    with writing(engine) as connection:
        lock_existing_row(connection, "uploads", "upload_id", upload_id)
        connection.execute(text("DELETE FROM traces WHERE upload_id = :upload_id"), {"upload_id": upload_id})
        query = text("SELECT run_id FROM uploads WHERE upload_id = :upload_id")
        count_change(connection, connection.execute(query, {"upload_id": upload_id}).scalar_one())
        connection.execute(insert(metadata.tables["traces"]).values(upload_id=upload_id, **about))
        rows = [(upload_id, number, *map(_known, draw)) for number, draw in enumerate(draws)]
        insert_rows(connection, "trace_draws", ("upload_id", "draw", *HIT_RATIOS, "dram_lines"), rows)
        places = [
            (upload_id, item, name, requests, *map(_known, ratios))
            for item, (name, requests, *ratios) in enumerate(sites)
        ]
        columns = ("upload_id", "item", "site", "requests", "lines_per_request", "l1_ratio", "l2_ratio")
        insert_rows(connection, "trace_sites", columns, places)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
