"""A store with runs of three months, from real exports of many kinds, and what it holds in its base tables."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.store.connection.transactions import reading
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.store.schema.tables import metadata
from tests.inputs.uploads import without_analysis

FIXTURES = Path(__file__).parents[4] / "fixtures"
# Run -> when it was measured, and its files.
RUNS = {
    "march-1": (
        "2025-03-02T10:00:00Z",
        ("ncu_raw/h200_three_launches.csv.gz", "ncu_details/h200_three_launches_min.csv.gz", "hioki/pw3335.csv"),
    ),
    "march-2": ("2025-03-31T23:59:59Z", ("nvprof/gpu_trace.csv", "nvprof/api_trace.csv", "ncu_source/lines.csv")),
    "april": ("2025-04-01T00:00:00Z", ("ncu_raw/plain.csv", "hioki/pw3335.csv")),
    "may": ("2025-05-09T00:00:00Z", ("ncu_raw/plain.csv",)),
}


def put(engine: Engine, files: BlobStore, run: str) -> list[int]:
    at, paths = RUNS[run]
    numbers = []
    for path in paths:
        # The last file of a run has it analysed, with all of them.
        analysed = nullcontext() if path == paths[-1] else without_analysis()
        with (FIXTURES / path).open("rb") as stream, analysed:
            info = store.RunInfo(name=run, at=at, commit_id="c0ffee", tags={"branch": "main"})
            numbers.append(int(pipeline.ingest(engine, stream, Path(path).name, info, files=files).upload_id or 0))
    return numbers


def base_rows(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all base tables, with every float as its bits."""
    found = {}
    with reading(engine) as connection:
        for name, table in metadata.tables.items():
            if name in {"archives", "archived_values", "facts"}:
                continue
            columns = ", ".join(f'"{column.name}"' for column in table.columns)
            rows = connection.execute(text(f"SELECT {columns} FROM {name}"))
            found[name] = sorted(
                (tuple(cell.hex() if isinstance(cell, float) else cell for cell in row) for row in rows), key=repr
            )
    return found


def close(value: Any) -> Any:
    """Return a value in which floats equal those that were summed in another order."""
    if isinstance(value, dict):
        return {name: close(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(*map(close, value)) if hasattr(value, "_fields") else type(value)(map(close, value))
    return pytest.approx(value, rel=1e-14, nan_ok=True) if isinstance(value, float) else value
