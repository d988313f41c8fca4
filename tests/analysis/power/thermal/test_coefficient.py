"""The coefficient of a board: repeats of a load check it, runs of the board add to it, and what contradicts is said."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.power.analyze import EarlierRuns, analyze_power
from profsvc.analysis.power.logs import UTC, Log
from profsvc.analysis.power.thermal.earlier_runs import COEFFICIENT_COLUMNS, NO_EARLIER_RUNS, WINDOW_COLUMNS
from profsvc.analysis.power.workloads import window_workloads
from tests.analysis.power.made_logs import NO_LAUNCHES, ORIGIN, S, made

Frames = Mapping[str, pd.DataFrame]
SIGMA = 0.44


class Stretch(NamedTuple):
    """A load: its power at 40 degC, temperatures from and to, and what the work adds by its end [W]."""

    load: str
    power_w: float
    from_c: float
    to_c: float
    work_w: float = 0.0
    seconds: float = 60.0
    sigma: float = SIGMA


def board(stretches: Sequence[Stretch], *, noise_w: float = 0.5, fan: bool | None = None) -> list[Log]:
    """The logs of a board that works on one stretch after the other, with temperatures in whole degrees."""
    rng, times, power, warmth, begin = np.random.default_rng(8), [], [], [], 0.0
    for one in stretches:
        t = np.arange(0.0, one.seconds, 0.1)
        way = (1 - np.exp(-t / (one.seconds / 4))) / (1 - np.exp(-4))
        T = one.from_c + (one.to_c - one.from_c) * way
        power.append(one.power_w + one.sigma * (T - 40) + one.work_w * way + noise_w * rng.standard_normal(t.size))
        warmth.append(T + 0.15 * rng.standard_normal(t.size))
        times.append(begin + t)
        begin += one.seconds
    time = np.concatenate(times)
    logs = [
        made("power", "board.instant", time, np.concatenate(power), number=1),
        made("temperature", "temperature.gpu", time, np.round(np.concatenate(warmth)), number=2, unit="degC"),
        made("clock", "clocks.current.sm", time, np.full(time.size, 1.98e9), number=3, unit="Hz"),
    ]
    if fan is not None:
        logs.append(made("fan", "fan.speed", time, np.full(time.size, 0.4 if fan else np.nan), number=4, unit="1"))
    return logs


def marks_of(stretches: Sequence[Stretch]) -> pd.DataFrame:
    ends = np.cumsum([one.seconds for one in stretches])
    return pd.DataFrame(
        {
            "name": [one.load for one in stretches],
            "domain": [one.load for one in stretches],
            "start_ns": [ORIGIN + round((end - one.seconds) * S) for end, one in zip(ends, stretches, strict=True)],
            "duration_ns": [(one.seconds - 0.2) * S for one in stretches],
            "active_sms": pd.array([132] * len(stretches), dtype="Int64"),
            "launches": pd.array([None] * len(stretches), dtype="Int64"),
            "upload_id": 9,
            "clock": UTC,
        }
    )


def analyzed(stretches: Sequence[Stretch], known: EarlierRuns | None = None, fan: bool | None = None) -> Frames:
    given = {} if known is None else {1: known}
    return analyze_power(board(stretches, fan=fan), marks_of(stretches), NO_LAUNCHES, known=given)


def own_row(frames: Frames, form: str = "consistent") -> dict[str, object]:
    rows = frames["power_coefficients"]
    return dict(rows[rows["form"] == form].iloc[0])


def flags_of(frames: Frames) -> set[str]:
    return set(frames["power_quality"]["flag"])


def test_a_coefficient_below_zero_is_refused():
    """Work that gets lighter within each load looks like a chip that draws less when it is warm."""
    frames = analyzed([Stretch("mix", 300, 42, 52, -6.5), Stretch("other", 420, 50, 62, -8)])
    row = own_row(frames)
    assert row["coefficient_high"] < 0
    assert row["used"] == 0
    assert "a warmer chip does not consume less" in str(row["reason"])
    assert frames["power_windows"]["corrected_power_w"].isna().all()
    assert row["sound"] == 0


@pytest.mark.parametrize("work_w", [-3.0, 8.0])
def test_a_coefficient_that_repeats_of_the_load_contradict_is_refused(work_w):
    """Within each window the work changes; from window to window it is the same."""
    plan = [Stretch("mix", 300, low, low + 8, work_w) for low in (38, 46, 54, 42, 50)]
    frames = analyzed(plan)
    row = own_row(frames)
    assert (row["used"], row["sound"]) == (0, 0)
    assert "the work seems to change with heat" in str(row["reason"])
    assert "within the loads it is between" in str(row["reason"])
    assert frames["power_windows"]["corrected_power_w"].isna().all()
    honest = own_row(analyzed([one._replace(work_w=0.0) for one in plan]))
    assert honest["coefficient_low"] < SIGMA < honest["coefficient_high"]
    assert (honest["used"], honest["sound"]) == (1, 1)
    assert str(honest["basis"]).endswith("; 5 repeats of 1 load agree")


def test_windows_of_one_load_a_few_degrees_apart_tell_it_together():
    """No window spans 5 degC, nor do all: what each adds is pooled, and the interval says how well it is known."""
    plan = [Stretch("mix", 540, low, low + 2.5, seconds=30.0) for low in (39, 40.5, 39.5, 41, 40, 39, 41, 40.5)]
    row = own_row(analyzed(plan))
    assert row["used"] == 1
    assert row["range_c"] < 5
    assert row["coefficient_low"] < SIGMA < row["coefficient_high"]
    assert row["coefficient_high"] - row["coefficient_low"] < 0.4


def test_loads_that_differ_have_a_coefficient_each():
    plan = [Stretch("light", 200, 40, 52, sigma=0.2), Stretch("heavy", 600, 45, 62, sigma=1.6)]
    frames = analyzed(plan)
    assert "loads_differ" in flags_of(frames)
    rows = frames["power_coefficients"]
    used = rows[rows["used"] == 1].set_index("load")
    assert set(used.index) == {"light", "heavy"}
    for one in plan:
        assert used.loc[one.load, "coefficient_low"] < one.sigma < used.loc[one.load, "coefficient_high"]
        window = frames["power_windows"].set_index("window").loc[one.load]
        assert window["coefficient_w_per_c"] == used.loc[one.load, "coefficient_w_per_c"]
    joint = rows[(rows["form"] == "consistent") & rows["load"].isna()].iloc[0]
    assert joint["used"] == 0
    assert "the loads differ significantly (p = " in joint["reason"]
    alike = analyzed([one._replace(sigma=SIGMA) for one in plan])
    assert "loads_differ" not in flags_of(alike)


def test_a_fan_that_nobody_logged_is_said():
    plan = [Stretch("mix", 300, 42, 54)]
    for logs, flagged in ((board(plan), False), (board(plan, fan=True), False), (board(plan, fan=False), False)):
        assert ("fan_unknown" in flags_of(analyze_power(logs, marks_of(plan), NO_LAUNCHES))) is flagged
    # An H200 has none of its own; of a board that nobody names it is not known.
    unnamed = [Log(**{**vars(log), "device": None}) for log in board(plan)]
    frames = analyze_power(unnamed, marks_of(plan), NO_LAUNCHES)
    assert "fan_unknown" in flags_of(frames)
    assert "fan_unknown" in frames["power_windows"].set_index("window").loc["mix", "quality"]


def test_a_refusal_says_how_to_record_a_log_that_works():
    frames = analyzed([Stretch("mix", 300, 45, 45, seconds=40.0), Stretch("other", 350, 45, 45, seconds=40.0)])
    row = own_row(frames)
    assert row["used"] == 0
    assert "to measure it, log power, temperature and clock while one constant load" in str(row["reason"])
    assert "no_coefficient" in flags_of(frames)


def test_a_coefficient_that_is_known_roughly_only_says_which_log_would_do():
    """Half a degree or two within a load tell little; a long range tells much."""
    rough, fine = ([Stretch("fp32", 300, 40, 40 + range_c)] for range_c in (2.5, 20))
    told = analyzed(rough)["power_quality"].set_index("flag")["message"]
    assert "profsvc characterize --power does" in str(told["coefficient_wide"])
    assert "coefficient_wide" not in flags_of(analyzed(fine))


def test_where_the_sign_is_not_known_what_hardly_moves_is_corrected_all_the_same():
    plan = [Stretch("a", 300, 48.6, 50.4, 0.5), Stretch("b", 360, 49.4, 50.4, -1), Stretch("c", 330, 30, 31, 0.2)]
    frames = analyze_power(board(plan, noise_w=6.0), marks_of(plan), NO_LAUNCHES)
    row = own_row(frames)
    assert "its sign is not known" in str(row["reason"])
    table = frames["power_windows"].set_index("window")
    near, far = table.loc["b"], table.loc["c"]
    reach = max(abs(row["coefficient_low"]), abs(row["coefficient_high"]))
    assert near["corrected_power_low_w"] < near["mean_power_w"] < near["corrected_power_high_w"]
    assert abs(near["corrected_power_high_w"] - near["mean_power_w"]) < 0.006 * near["mean_power_w"]
    assert far["corrected_power_w"] is None
    most = reach * abs(far["mean_temperature_c"] - far["reference_temperature_c"])
    assert f"the correction of this window would be up to {most:.2g} W" in far["reason"]


def earlier(value: float, half: float, run: int = 3) -> EarlierRuns:
    cells = (run, "board.instant", 1.98e9, None, value, value - half, value + half, 40.0, 60.0)
    row = dict(zip(COEFFICIENT_COLUMNS, cells, strict=True))
    return NO_EARLIER_RUNS._replace(coefficients=pd.DataFrame([row]))


STILL = (Stretch("mix", 300, 50, 50.1, seconds=40.0), Stretch("other", 350, 44, 44.1, seconds=40.0))


def test_a_known_coefficient_is_carried_to_the_next_run_of_the_board_and_the_row_says_so():
    frames = analyzed(STILL, earlier(0.5, 0.1))
    row = own_row(frames, "pooled")
    assert (row["used"], row["coefficient_w_per_c"]) == (1, pytest.approx(0.5, abs=0.02))
    assert "run 3 of this board" in str(row["basis"])
    assert own_row(frames)["used"] == 0
    assert "coefficient_carried" in flags_of(frames)
    table = frames["power_windows"].set_index("window")
    assert table.loc["other", "corrected_power_w"] > table.loc["other", "mean_power_w"]
    other_clock = earlier(0.5, 0.1)
    other_clock.coefficients["clock_hz"] = 1.2e9
    assert (analyzed(STILL, other_clock)["power_coefficients"]["form"] != "pooled").all()


def test_runs_of_a_board_are_pooled_unless_they_contradict_each_other():
    plan = [Stretch("mix", 300, 40, 50), Stretch("other", 360, 44, 54)]
    alone = own_row(analyzed(plan))
    pooled = own_row(analyzed(plan, earlier(0.43, 0.02)), "pooled")
    assert pooled["coefficient_high"] - pooled["coefficient_low"] < 0.045
    assert pooled["coefficient_low"] < alone["coefficient_w_per_c"] + 0.1
    apart = analyzed(plan, earlier(1.5, 0.1))
    assert "board_differs" in flags_of(apart)
    assert own_row(apart)["used"] == 1
    assert own_row(apart)["coefficient_w_per_c"] == alone["coefficient_w_per_c"]


def test_one_load_at_another_temperature_in_each_run_tells_it():
    """Neither run warms up; between them the board was 10 degC colder, twice."""
    rows = [
        dict(
            zip(
                WINDOW_COLUMNS,
                (run, "board.instant", "load", "marks", "mix", 132, None, 40.0, 1.98e9, power, T),
                strict=True,
            )
        )
        for run, power, T in ((3, 300 + SIGMA * 0, 40.0), (4, 300 + SIGMA * 22, 62.0), (5, 300 + SIGMA * 15, 55.0))
    ]
    frames = analyzed(STILL, NO_EARLIER_RUNS._replace(windows=pd.DataFrame(rows)))
    row = own_row(frames, "pooled")
    assert row["used"] == 1
    assert row["coefficient_low"] < SIGMA < row["coefficient_high"]
    assert "runs 3, 4, 5 of this board" in str(row["basis"])


def test_windows_that_were_all_held_down_are_refused_and_not_stumbled_over():
    """No window is left of which anything could be pooled."""
    plan = [Stretch("mix", 300, 42, 54)]
    logs = board(plan)
    slow = made("state", "clocks_event_reasons.active", np.arange(0, 60, 0.1), np.full(600, 4.0), number=5, unit="1")
    frames = analyze_power([*logs, slow], marks_of(plan), NO_LAUNCHES)
    row = own_row(frames)
    assert row["used"] == 0
    assert row["reason"]
    assert frames["power_windows"]["corrected_power_w"].isna().all()


def test_loads_far_apart_do_not_widen_what_a_coefficient_was_seen_over():
    """One load at 40 and another at 70 degC say nothing of what happens between."""
    row = own_row(analyzed([Stretch("cold", 300, 40, 46), Stretch("hot", 500, 70, 76)]))
    assert row["used"] == 1
    assert row["range_c"] < 8


def cooling(falls: int, held_s: float, seconds: float = 14.0) -> tuple[list[Log], list[Stretch]]:
    """A light load after each of several heavy ones, whose clock is still held down for a while."""
    plan = [one for _ in range(falls) for one in (Stretch("heavy", 680, 50, 58, seconds=8.0),
                                                  Stretch("light", 145, 49, 41, seconds=seconds))]  # fmt: skip
    logs = board(plan)
    time = (logs[0].time_ns - ORIGIN) / S
    begins = np.cumsum([0.0, *(one.seconds for one in plan)])[:-1]
    held = np.zeros(time.size)
    for begin, one in zip(begins, plan, strict=True):
        last = one.seconds if one.load == "heavy" else held_s
        held[(time >= begin) & (time < begin + last)] = 4.0
    return [*logs, made("state", "clocks_event_reasons.active", time, held, number=5, unit="1")], plan


def test_the_begin_of_a_load_tells_the_coefficient_although_the_clock_was_still_held_down():
    logs, plan = cooling(6, 0.6)
    frames = analyze_power(logs, marks_of(plan), NO_LAUNCHES)
    row = own_row(frames)
    assert row["used"] == 1
    assert row["coefficient_low"] < SIGMA < row["coefficient_high"]
    assert row["coefficient_high"] - row["coefficient_low"] < 0.3 * SIGMA
    assert row["segments"] == 6


def test_windows_of_one_pace_are_repeats_wherever_the_pace_lies():
    """Paces a little apart are one, also on both sides of any edge; a fifth apart they are not."""
    launches = [1000, 1002, 1005, 1009, 1200]
    table = pd.DataFrame(
        {"source": "marks", "kind": "load", "load": "a", "active_sms": 16, "launches": launches, "duration_s": 10.0}
    )
    told = window_workloads(table)
    assert len(set(told[:4])) == 1
    assert told[4] != told[0]
