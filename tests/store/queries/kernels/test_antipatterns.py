"""What patterns cost the kernels of a run, on both engines."""

import pytest

from profsvc import pipeline, store
from tests.conftest import DEMO


def test_lost_time_is_summed_by_pattern_and_kernel(engine):
    with DEMO.open("rb") as stream:
        pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200"))
    rows = {(row["pattern"], row["kernel_short"]): row for row in store.lost_of_kernels(engine, 1)}
    banks = rows["banks", "shared_conflict"]
    assert (banks["launches"], banks["known"], banks["reason"]) == (6, 6, None)
    assert banks["lost_ns"] / banks["known_ns"] == pytest.approx(0.8975, abs=1e-3)
    assert store.saved_by_cause(engine, 1)["bank_conflicts"] == pytest.approx(0.2 * 17060064, rel=0.2)
    assert store.executed_instructions(engine, 1, 1) == []
