"""Readings of a sensor as arrays are those of the view, whether they are rows, packed, or both."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.readings.sensor_blocks import blocks_of, readings_on, timed_readings
from profsvc.store.results.power import CLOCKS, last_samples, sensor_readings
from profsvc.tables import Batch
from tests.store.ingest.test_events import put
from tests.store.ingest.writers.test_packed_samples import CLOCKS as SHOWN
from tests.store.ingest.writers.test_packed_samples import LONG, STEPS, VALUES, series, unpacked

SENSOR = 10**9 + 1


@pytest.mark.parametrize("clock", [name for name in SHOWN if name != "none"])
def test_readings_are_those_of_the_view(engine: Engine, clock: str) -> None:
    columns = series(VALUES["implausible"]) | SHOWN[clock] | {"sensor_index": np.zeros(LONG, np.int64)}
    more: dict[str, Any] = series(VALUES["missing now and then"], None, sample_index=STEPS + LONG + 3)
    more |= dict.fromkeys(("elapsed_ns", "time_ns", "local_ns"))
    tail = Batch({"samples": unpacked(more, LONG)["samples"]})
    put(engine, "a", Batch(unpacked(columns, LONG)), tail)
    view = store.table(engine, "v1_samples", sensor_id=SENSOR)
    assert (view["value"].isna() & view["as_read"].notna()).any()
    with reading(engine) as connection:
        found = blocks_of(connection, SENSOR)
        counts = timed_readings(connection, found)
    assert counts == {"every": 2 * LONG, **{name: int(view[name].notna().sum()) for name in CLOCKS.values()}}
    for name in CLOCKS.values():
        parts = list(readings_on(engine, found, name))
        timed = np.concatenate([part.timed for part in parts])
        assert timed.tolist() == view[name].notna().tolist()
        assert np.concatenate([part.time_ns for part in parts])[timed].tolist() == view[name].dropna().tolist()
        assert np.concatenate([part.sample_index for part in parts]).tolist() == view["sample_index"].tolist()
        np.testing.assert_array_equal(np.concatenate([part.value for part in parts]), view["value"])
    best = next(name for name in CLOCKS.values() if counts[name])
    read = sensor_readings(engine, SENSOR)
    assert CLOCKS[read.clock] == best
    assert read.time_ns.tolist() == view[best].dropna().tolist()
    np.testing.assert_array_equal(read.value, view["value"][view[best].notna()])
    assert read.untimed == int(view[best].isna().sum())
    last = last_samples(engine, [SENSOR], 40, 0.0)
    wanted = view[(view["sample_index"] >= 2 * LONG + 3 - 40)]
    pd.testing.assert_frame_equal(last, wanted[list(last)].reset_index(drop=True), check_dtype=False)


def test_a_sensor_that_is_not_there(engine: Engine) -> None:
    with pytest.raises(NotFoundError, match="no sensor has the number 7"):
        sensor_readings(engine, 7)
