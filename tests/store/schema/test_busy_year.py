"""The simulated year has in every copied run what its original has."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.store.queries.kernels.history import HistoryFilter
from profsvc.views import history
from tests.benchmarks.busy_year import Size, fill_month, unit_costs
from tests.store.conftest import only_on

NUMBERS = {"run_id", "upload_id", "launch_id", "sensor_id", "block_id", "block_last_id", "sample_id"}
TIMES = {"duration_ns", "ideal_ns", "value", "raw_text", "saving_ns", "as_read"}


@only_on("postgresql", "the year is one of a team")
def test_copied_runs_have_what_the_first_has(engine: Engine, tmp_path: Path) -> None:
    size = Size(months=1, runs=3, loaded=1, launches=4, metrics=20, readings=40)
    assert fill_month(engine, tmp_path, 2, size) > (0, 0)
    for view in ("v1_launches", "v1_metrics", "v1_samples", "v1_potential", "v1_criteria", "v1_counter_values"):
        runs = [
            sorted(
                ({name: cell for name, cell in row.items() if name not in NUMBERS | TIMES} for row in rows),
                key=repr,  # not every view promises an order
            )
            for rows in (store.select(engine, view, run_id=run) for run in (1, 2, 3))
        ]
        assert runs[0] == runs[1] == runs[2], view
        assert runs[0], view
    points = history.history(engine, "#1", "duration", HistoryFilter())["points"]
    assert len(points) == 3
    assert len({point["at"] for point in points}) == 3
    assert unit_costs(engine)["reading"] > 0
    assert store.unfinished(engine) == {}
    assert [row["value"] for row in store.select(engine, "v1_samples", run_id=3)] == pytest.approx(
        [row["value"] for row in store.select(engine, "v1_samples", run_id=1)]
    )
