import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.operations import OPERATIONS, UNITS
from profsvc.formulas.performance.speedup import bottleneck_speedup
from profsvc.formulas.performance.time_shares import time_shares

counts = hnp.arrays(np.int64, (3, len(OPERATIONS)), elements=st.integers(0, 10**9))
COST = np.array([4.0, 4, 2, 2, 1, 1, 1, 1, 0.25, 0.25, 1, 2])


@given(counts, st.floats(0, 1), st.integers(1, 200), st.sampled_from(["consistent", "bottleneck"]))
def test_shares_and_idle_add_up_to_one(n: np.ndarray, idle: float, sms: int, form: str) -> None:
    result = time_shares(n, COST, 10**12, idle, sms, form)
    worked = n.any(axis=-1)
    np.testing.assert_allclose(result.share.sum(axis=-1)[worked] + idle, 1)
    assert ((result.share >= 0) & (result.share <= 1)).all()
    assert (result.share[~worked] == 0).all()
    assert (result.flags[~worked] & Flag.NOT_APPLICABLE).all()
    assert (result.bottleneck[~worked] == -1).all()


@given(counts)
def test_one_kernel_is_a_row_of_many(n: np.ndarray) -> None:
    many = time_shares(n, COST, [10, 20, 30], [0.1, 0.2, 0.3], 4)
    for k in range(3):
        one = time_shares(n[k], COST, 10 * (k + 1), 0.1 * (k + 1), 4)
        for a, b in zip(one, many, strict=True):
            np.testing.assert_allclose(a, b[k])


def test_private_units_work_side_by_side() -> None:
    n = np.zeros(12)
    n[[0, 2, 4, 6, 8]] = 100
    result = time_shares(n, 1.0, 100, 0.0, 4)
    assert dict(zip(UNITS, result.busy.tolist(), strict=True)) == {
        "dram": 100,
        "l2": 100,
        "l1": 25,
        "shared": 25,
        "arithmetic": 25,
    }
    assert result.other_utilization.tolist() == [1.0, 1.0, 1.0, 1.0, 1.0]


def test_published_has_no_sms_and_no_idle() -> None:
    n = np.full(12, 10)
    printed = time_shares(n, 10.0, 100, 0.5, 4, "as_published")
    assert printed.share.tolist() == [2.0, 2.0, 2.0, 2.0, 4.0]
    assert (printed.flags & Flag.RAW_OUT_OF_RANGE).all()


def test_bottleneck_goes_with_its_speedup() -> None:
    n = np.zeros(12)
    n[0], n[2] = 80, 40
    result = time_shares(n, 1.0, 100, 0.2, 1, "bottleneck")
    assert result.share.tolist() == [0.8, 0, 0, 0, 0]
    assert UNITS[int(result.bottleneck)] == "dram"
    assert bottleneck_speedup(result.utilization, result.other_utilization, 0.25).tolist() == [2.0, 1.0, 1.0, 1.0, 1.0]


def test_edges() -> None:
    n = np.full(12, 10.0)
    stopped = time_shares(n, 1.0, 0, 0.0, 1)
    assert np.isnan(stopped.utilization).all()
    assert (stopped.flags == Flag.ZERO_DENOM).all()
    assert time_shares(n, 1.0, 10, 0.0, 1).flags.tolist() == [Flag.INPUT_SUSPECT] * 5
    no_sms = time_shares(n, 1.0, 100, 0.0, 0)
    assert np.isnan(no_sms.busy).tolist() == [False, False, True, True, True]
    n[5] = np.nan
    missing = time_shares(n, 1.0, 100, 0.0, 1)
    assert np.isnan(missing.share).all()
    assert missing.flags.tolist() == [0, 0, Flag.INPUT_SUSPECT, 0, 0]
    percent = time_shares(np.full(12, 1.0), 1.0, 100, 40.0, 1)
    assert (percent.flags == Flag.INPUT_SUSPECT | Flag.RAW_OUT_OF_RANGE).all()


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="the 12 OPERATIONS last"):
        time_shares(np.ones(5), 1.0, 10, 0.0, 1)
    with pytest.raises(ValueError, match="allowed: 'as_published', 'consistent', 'bottleneck'"):
        time_shares(np.ones(12), 1.0, 10, 0.0, 1, form="issue")
    with pytest.raises(ValueError, match="do not broadcast"):
        time_shares(np.ones((2, 12)), 1.0, [1, 2, 3], 0.0, 1)


def test_arguments_stay_as_they_are() -> None:
    n = np.arange(12)
    n.flags.writeable = False
    time_shares(n, COST, 100, 0.1, 4)
    assert n.tolist() == list(range(12))
