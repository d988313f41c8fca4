"""What a migration sums up and lists of stored files is what an upload stores."""

from typing import Any

import numpy as np
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import reading
from profsvc.store.ingest.writers.listed_launches import KERNEL_DEPTH, MIN_LAUNCHES
from profsvc.store.maintenance import migrations
from profsvc.tables import Batch, frame, frame_of_arrays
from tests.store.conftest import COUNTERS, info
from tests.store.maintenance.test_backfill import lower

KEPT = {
    "shape_totals": "*",
    "place_totals": "upload_id, place_id, launches",
    "launch_lists": "upload_id, depth, kernel_depth",
    "listed_launches": "upload_id, kernel_id, launch_id, duration_ns",
    "transfer_totals": "upload_id, kind_id, transfers, total_ns, bytes",
}


def trace(seed: int, launches: int, kernels: int) -> Batch:
    """Return a trace with equal durations, launches without one, and transfers."""
    draw = np.random.default_rng(seed)
    names = np.array([f"kernel_{number}(int)" for number in range(kernels)], object)
    durations = np.where(draw.random(launches) < 0.01, np.nan, np.round(draw.lognormal(6, 1, launches)))
    rows = {
        "launch_index": np.arange(launches),
        "kernel": names[draw.integers(0, kernels, launches)],
        "start_ns": 10**9 * seed + 10 * np.arange(launches),
        "duration_ns": durations,
        "grid_x": draw.integers(1, 99, launches),
        "grid_y": np.full(launches, 2**40),
        "block_x": np.where(np.arange(launches) % 2 == 0, 64, 128),
        "line": np.arange(launches) + 1,
    }
    copies = {"kind": ["HtoD", "DtoH", "HtoD"], "bytes": [2**50, None, 5], "duration_ns": [0.5, None, 3.25]}
    tables = {
        "launches": frame_of_arrays("launches", launches, rows),
        "transfers": frame("transfers", copies | {"line": [1, 2, 3]}),
    }
    return Batch(tables, lines_stored=launches)


def kept(engine: Engine) -> dict[str, list[Any]]:
    with reading(engine) as connection:
        return {
            table: [tuple(row) for row in connection.execute(text(f"SELECT {columns} FROM {table} ORDER BY 1, 2, 3"))]
            for table, columns in KEPT.items()
        }


def test_stored_files_are_filled_in(engine: Engine) -> None:
    traces = {"long": (MIN_LAUNCHES, 40), "many kernels": (MIN_LAUNCHES + 1, 4000), "short": (MIN_LAUNCHES - 1, 3)}
    for number, (name, size) in enumerate(traces.items()):
        store.write_upload(engine, info(name, form="nvprof"), store.RunInfo(name="run"), [trace(number, *size)])
    wanted = kept(engine)
    assert [row[2] for row in wanted["launch_lists"]] == [KERNEL_DEPTH, 25]
    assert len(wanted["transfer_totals"]) == 6
    lower(engine, "0031")
    migrations.upgrade(engine, COUNTERS)
    assert kept(engine) == wanted
