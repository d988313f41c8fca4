"""The offset between two clocks, on logs of boards whose clocks, parts and sensors are known."""

from typing import NamedTuple

import numpy as np
import pytest

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermal.clock_offset.two_logs import Offset, estimate_offset
from tests.formulas.thermal import synthetic_logs

STEP_S = 0.1


class Logs(NamedTuple):
    """What two loggers wrote, each by its own clock."""

    tp: np.ndarray
    p: np.ndarray
    t_warm: np.ndarray
    T: np.ndarray


def board(seed: int, offset: float, loads: int = 6, window: float = 0.0, lag: float = 0.0, rise: float = 25.0) -> Logs:
    """A die and a heat sink under loads of several levels; leakage, noise, whole degrees, lost stretches."""
    rng = np.random.default_rng(seed)
    spans = np.concatenate((rng.uniform(30, 60, 1), rng.uniform(30, 90, 2 * loads)))
    levels = np.where(np.arange(2 * loads + 1) % 2, rng.uniform(150, 450, 2 * loads + 1), 0.0)
    ends = np.cumsum(spans)
    n = int(ends[-1] / STEP_S)
    level = levels[np.searchsorted(ends, np.arange(n) * STEP_S, side="right").clip(max=2 * loads)]
    rc, ratio = np.array([rng.uniform(15, 45), rng.uniform(1, 2.5)]), rng.uniform(1, 1.6)
    share = np.array([0.7, 0.3]) * rise / levels.max()
    up, down = np.exp(-STEP_S / rc), np.exp(-STEP_S / (rc * ratio))
    theta, power, above = np.zeros(2), np.empty(n), np.empty(n)
    for k in range(n):
        above[k] = theta.sum()
        power[k] = 60 + level[k] + 0.5 * above[k]
        target = share * (power[k] - 60)
        theta = target + (theta - target) * np.where(theta < target, up, down)
    t = np.arange(n) * STEP_S
    energy = np.concatenate(([0.0], np.cumsum(power)))[:-1] * STEP_S
    tp, tT = (
        np.sort(rng.uniform(0.4, 1.6) + np.arange(0, t[-1] - 4, poll) + rng.uniform(0, 0.02)) for poll in (0.2, 1.0)
    )
    lost = rng.uniform(0.2, 0.8, 2) * t[-1]
    tp, tT = tp[(tp < lost[0]) | (tp > lost[0] + 8)], tT[(tT < lost[1]) | (tT > lost[1] + 12)]
    w = max(window, STEP_S)
    p = (np.interp(tp, t, energy) - np.interp(tp - w, t - 0.0, energy, left=-60 * w)) / w
    T = np.interp(tT - lag, t, above) + rng.normal(0, 0.2, tT.size)
    return Logs(tp, p + rng.normal(0, 2, tp.size), tT + offset, np.round(35 + T))


@pytest.fixture(scope="module")
def found() -> list[tuple[float, Offset]]:
    """Errors of the offset on boards that differ, and what was found; an age of half an update is not an error."""
    logs = synthetic_logs.simulate(41, 10)
    told = [
        estimate_offset(log.power_time_s, log.power_w - log.fan_w, log.temperature_time_s, log.temperature_c)
        for log in logs
    ]
    return [((t.low_s + t.high_s) / 2 - log.truth.shift_s, t) for log, t in zip(logs, told, strict=True)]


def test_claimed_offsets_are_right_and_intervals_are_honest(found: list[tuple[float, Offset]]) -> None:
    wrong, told = np.array([e for e, _ in found]), [t for _, t in found]
    claimed = np.array([t.refused == "" for t in told])
    assert {t.refused for t in told} <= {"", "uncertain"}
    assert claimed.mean() >= 0.4
    assert (np.abs(wrong[claimed]) < 0.2).mean() > 0.95
    half = np.array([t.high_s - t.low_s for t in told]) / 2
    assert (np.abs(wrong) < half).mean() > 0.9
    assert np.sqrt(np.mean((2 * wrong / half) ** 2)) > 0.7
    assert (half[claimed] < 0.2).all()
    assert (half[~claimed] >= 0.2).all()


def test_a_wide_interval_is_reported_with_the_steps_it_lacks(found: list[tuple[float, Offset]]) -> None:
    for _, t in found:
        assert t.high_s - t.low_s == pytest.approx(4 * t.se_s)
        if t.refused:
            enough = (1 + t.more_steps / t.steps) ** -0.5
            assert 0.7 * 0.2 < 2 * t.se_s * enough <= 0.2001
            assert np.isnan(t.offset_s)
        else:
            assert t.more_steps == 0
            assert t.low_s < t.offset_s < t.high_s


def test_six_loads_tell_the_offset() -> None:
    for seed in range(6):
        offset = (-1) ** seed * 2.3 * seed
        found = estimate_offset(*board(seed, offset))
        assert found.refused == ""
        assert found.offset_s == pytest.approx(offset, abs=min(0.2, 3 * found.se_s))


def test_a_lag_looks_like_an_offset_and_delay_like_its_opposite() -> None:
    plain = estimate_offset(*board(3, 5.0)).offset_s
    assert estimate_offset(*board(3, 5.0, lag=2.0)).offset_s == pytest.approx(plain + 2.0, abs=0.1)
    assert estimate_offset(*board(3, 5.0, lag=2.0), temperature_lag_s=2.0).offset_s == pytest.approx(plain, abs=0.1)
    assert estimate_offset(*board(3, 5.0, window=2.0)).offset_s == pytest.approx(plain - 1.0, abs=0.15)
    assert estimate_offset(*board(3, 5.0, window=2.0), power_late_s=1.0).offset_s == pytest.approx(plain, abs=0.15)


def test_what_else_the_fit_says() -> None:
    found = estimate_offset(*board(1, 0.0))
    assert found.steps == 12
    assert found.rise_c == pytest.approx(25, abs=8)
    assert found.explained > 0.98
    assert found.residual_c == pytest.approx(np.hypot(0.2, 12**-0.5), rel=0.3)
    assert found.rc_rise_s.size == 2
    assert (found.rc_decay_s >= 0.9 * found.rc_rise_s).all()


def test_any_load_tells_not_only_steps() -> None:
    t = np.arange(0, 600, 0.5)
    power = 250 + 150 * np.sin(t / 17) * np.sin(t / 61)
    theta, T = 0.0, np.empty(t.size)
    for k, p in enumerate(power):
        T[k] = theta
        theta = 0.1 * (p - 250) + (theta - 0.1 * (p - 250)) * np.exp(-0.5 / 20)
    found = estimate_offset(t, power, t + 11.0, np.round(60 + T))
    assert found.offset_s == pytest.approx(11.0, abs=0.4)


def without_information() -> dict[str, tuple[Logs, str]]:
    rng = np.random.default_rng(0)
    tp, p, tT, T = board(0, 0.0)
    flat = np.full(T.size, 40.0)
    cold = np.round(35 + 0.05 * (T - 35))
    start = tp < 25
    period = np.arange(0, 600, 0.5)
    wave = np.where(period % 20 < 10, 400.0, 80.0)
    theta, swing = 0.0, np.empty(period.size)
    for k, level in enumerate(wave - 240):
        swing[k] = theta
        theta = 0.1 * level + (theta - 0.1 * level) * np.exp(-0.5 / 8)
    inside = (period > 200) & (period < 400)
    return {
        "flat": (Logs(tp, p, tT, flat), "flat_temperature"),
        "barely warm": (Logs(tp, p, tT, cold), "flat_temperature"),
        "noise": (Logs(tp, p, tT, np.round(40 + rng.normal(0, 2, T.size))), "no_response"),
        "drift": (Logs(tp, p, tT, np.round(40 + tT / 50)), "no_response|ambiguous"),
        "another board": (Logs(tp, p, *board(99, 0.0)[2:]), "no_response|outside_search|ambiguous"),
        "idle": (Logs(tp[start], p[start], tT, T), "no_step|too_few"),
        "no power moves": (Logs(tp, np.full(tp.size, 300.0) + rng.normal(0, 2, tp.size), tT, T), "no_step"),
        "short": (Logs(tp, p, tT[:20], T[:20]), "too_few"),
        "apart": (Logs(tp, p, tT + 9e5, T), "too_few"),
        "periodic": (Logs(period, wave, period[inside], np.round(50 + swing)[inside]), "ambiguous|outside_search"),
        "none": (Logs(*[np.empty(0)] * 4), "too_few"),
    }


@pytest.mark.parametrize("case", without_information())
def test_a_log_without_information_is_refused(case: str) -> None:
    logs, why = without_information()[case]
    found = estimate_offset(*logs)
    assert found.refused in why.split("|")
    assert np.isnan(found.offset_s)
    assert found.flags & Flag.INPUT_SUSPECT


def test_the_callers_limits() -> None:
    logs = board(2, 20.0)
    assert estimate_offset(*logs, search_s=10.0).refused in ("outside_search", "no_response")
    error = estimate_offset(*logs).se_s
    tight = estimate_offset(*logs, within_s=error)
    assert (tight.refused, tight.more_steps) == ("uncertain", 36)  # 12 steps, and the interval is twice too wide
    assert tight.se_s == error
    assert tight.low_s < 20 < tight.high_s
    with pytest.raises(TypeError, match="temperature_c has dtype"):
        estimate_offset(logs.tp, logs.p, logs.t_warm, ["31"] * logs.t_warm.size)
