"""What is said of a channel does not depend on how its readings come: in one piece, or in many."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.parsing.timestamps import LOCAL
from profsvc.formats.timeseries.channels import MAX_INTERVALS, Readings, Sensors, SensorState
from profsvc.formats.timeseries.columns import Column
from profsvc.tables import ColumnTable

POWER = Column("power.draw", quantity="power", unit="W")
MS = 10**6


def readings(stamps, values, reasons=None):
    ns = None if stamps is None else np.array(stamps, np.int64)
    return Readings(ns, np.array(values, np.float64), reasons, np.arange(len(values)))


def channel(*parts, quantity="power"):
    found = SensorState(0, Column("x", quantity=quantity, unit="W"), 0, None, 1)
    for part in parts:
        found.see(part)
    return found


def figures(found):
    kept = [np.concatenate(steps).tolist() if steps else [] for steps in (found.polls, found.updates)]
    return found.count, found.valued, found.changes, found.backwards, found.fine, kept, found.quality()


def told(stamps, values):
    """The same figures, reading by reading as they are defined."""
    known = [(at, value) for at, value in zip(stamps, values, strict=True) if value == value]
    steps = [after - before for before, after in itertools.pairwise(stamps)]
    at = [at for (_, before), (at, value) in itertools.pairwise(known) if value != before]
    updates = [after - before for before, after in itertools.pairwise(at)]
    return (
        len(values),
        len(known),
        len(at),
        sum(step < 0 for step in steps),
        any(value % 1 for _, value in known),
        [[step for step in steps if step >= 0], [step for step in updates if step >= 0]],
    )


STAMPS = st.integers(0, 50).map(lambda at: at * MS)
VALUES = st.sampled_from([1.0, 2.0, 2.5, float("nan")])


@given(st.lists(st.tuples(STAMPS, VALUES), min_size=1, max_size=40), st.sets(st.integers(1, 39)))
def test_pieces_say_what_the_whole_says(rows, cuts):
    stamps, values = map(list, zip(*rows, strict=True))
    bounds = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    parts = [readings(stamps[a:b], values[a:b]) for a, b in itertools.pairwise(bounds)]
    assert figures(channel(*parts)) == figures(channel(readings(stamps, values)))
    assert figures(channel(*parts))[:-1] == told(stamps, values)


def test_no_more_intervals_are_kept_than_room_is_for():
    count = MAX_INTERVALS + 100
    found = channel(*[readings(range(begin, begin + count), np.arange(count) / 2) for begin in (0, count)])
    assert [sum(map(len, steps)) for steps in (found.polls, found.updates)] == [MAX_INTERVALS] * 2
    assert found.changes == 2 * count - 1


def test_of_whole_quantities_no_intervals_are_kept():
    found = channel(readings(range(20), np.arange(20) / 2), quantity="temperature")
    assert (found.polls, found.updates, found.quality()) == ([], [], None)


def test_readings_without_stamps_have_no_steps():
    assert figures(channel(readings(None, [1.5, 2.5]))) == (2, 2, 1, 0, True, [[], []], None)


def test_sensors_of_one_clock_share_it_and_others_do_not():
    found, stamps = Sensors(), np.array([10, 30, 20]) * MS
    for name, ns in (("a", stamps), ("b", stamps), ("c", np.sort(stamps)), ("d", None)):
        column = Column(name, quantity="power", unit="W")
        found.add(found.channel(column, 0, None, 1), Readings(ns, np.array([1.0, 2.0, 3.0]), None, np.arange(3)))
    assert [one.backwards for one in found.channels.values()] == [1, 1, 0, 0]
    samples = found.take(LOCAL)["samples"].frame
    assert samples["local_ns"].isna().tolist() == [False] * 9 + [True] * 3
    assert samples["local_ns"].dropna().tolist() == [*stamps, *stamps, *sorted(stamps)]
    assert samples["sensor_index"].tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


def test_samples_of_a_sensor_count_on_and_no_reason_can_be_written():
    found = Sensors()
    one = found.channel(POWER, 0, None, 1)
    for values in ([1.0, 2.0], [3.0]):
        found.add(one, readings(range(len(values)), values))
    samples = found.take(LOCAL)["samples"].frame
    assert samples["sample_index"].tolist() == [0, 1, 2]
    assert samples["reason"].isna().all()
    with pytest.raises(ValueError, match="read-only"):
        samples["reason"].to_numpy()[0] = "other"
    found.add(one, readings([5], [np.nan], np.array(["n/a"], object)))
    assert found.take(LOCAL)["samples"].frame["reason"].tolist() == ["n/a"]
    assert found.take(LOCAL) == {}
    assert isinstance(found.table()["sensors"], ColumnTable)


def test_a_value_that_returns_by_chance_is_not_a_slow_sensor():
    at = [n * 1000 * MS for n in range(6)]
    assert channel(readings(at, [37.5, 38.7, 37.5, 38.7, 38.7, 38.7])).quality() is None
    slow = channel(readings(at, [37.5, 37.5, 38.7, 38.7, 37.5, 37.5])).quality()
    assert slow == "updates every 2000 ms but was polled every 1000 ms (medians): 3 of 6 readings are duplicates"
