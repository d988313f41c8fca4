"""Windows of a run: from marks, from launches, from levels of the power."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.power import windows as power_windows

S = 10**9


def test_marks_are_windows_and_rest_is_idle():
    marks = pd.DataFrame(
        {
            "name": ["idle", "mem, 1 SM", "mem, 16 SMs", "alone"],
            "domain": ["idle", "mem", "mem", None],
            "start_ns": [0, 10 * S, 20 * S, 30 * S],
            "duration_ns": [9.0 * S, 7.0 * S, 7.0 * S, 1.0 * S],
            "active_sms": pd.array([0, 1, 16, None], dtype="Int64"),
            "launches": pd.array([None, 100, 90, None], dtype="Int64"),
        }
    )
    found = power_windows.mark_windows(marks)
    assert found["window"].tolist() == ["idle", "mem, 1 SM", "mem, 16 SMs", "alone"]
    assert found["load"].tolist() == ["idle", "mem", "mem", "alone"]
    assert found["kind"].tolist() == ["idle", "load", "load", "load"]
    assert found["end_ns"].tolist() == [9 * S, 17 * S, 27 * S, 31 * S]
    assert found["active_sms"].tolist()[:3] == [0, 1, 16]
    assert found["launches"].isna().tolist() == [True, False, False, True]
    assert set(found["source"]) == {"marks"}


@pytest.mark.parametrize("name", ["random_forest", "restore", "interest", "coolant", "idler"])
def test_a_load_whose_name_contains_a_word_of_rest_is_a_load(name):
    assert not power_windows.IDLE_NAME.search(name)


@pytest.mark.parametrize(
    "name", ["idle", "Idle 2", "idle_before", "cool down", "cooldown", "at rest", "pause-1", "sleeping"]
)
def test_rest_by_name(name):
    assert power_windows.IDLE_NAME.search(name)


def launches(*rows: tuple[str, float, float]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "kernel": [kernel for kernel, _, _ in rows],
            "start_ns": pd.array([round(start * S) for _, start, _ in rows], dtype="Int64"),
            "duration_ns": [duration * S for _, _, duration in rows],
        }
    )


def test_a_stretch_of_one_kernel_ends_at_a_pause_and_at_another_kernel():
    table = launches(("a()", 0, 1), ("a()", 1.01, 1), ("a()", 3, 1.5), ("void b<1>()", 4.5, 2), ("a()", 6.5, 0.5))
    found = power_windows.kernel_windows(table, 1.0, 0.1)
    assert found[["window", "launches", "begin_ns", "end_ns"]].to_numpy().tolist() == [
        ["a", 2, 0, round(2.01 * S)],
        ["a (2)", 1, 3 * S, round(4.5 * S)],
        ["b", 1, round(4.5 * S), round(6.5 * S)],
    ]
    assert found["kernel"].tolist() == ["a()", "a()", "void b<1>()"]


def test_a_launch_that_runs_beside_a_shorter_one_keeps_the_stretch_together():
    found = power_windows.kernel_windows(launches(("a()", 0, 5), ("a()", 1, 0.1), ("a()", 5.05, 1)), 1.0, 0.1)
    assert found[["launches", "end_ns"]].to_numpy().tolist() == [[3, round(6.05 * S)]]


def test_kernels_that_take_turns_too_fast_are_one_busy_stretch():
    table = launches(*[("ab"[n % 2], n / 100, 0.009) for n in range(200)], ("a", 9, 0.1))
    found = power_windows.kernel_windows(table, 1.0, 0.1)
    assert found[["window", "kind", "launches"]].to_numpy().tolist() == [["busy", "load", 200]]
    assert power_windows.kernel_windows(table.iloc[:0], 1.0, 0.1).empty


def test_levels_at_which_the_board_rested_are_idle():
    begin, end = np.arange(4) * 10 * S, np.arange(1, 5) * 10 * S
    found = power_windows.level_windows(begin, end, np.array([True, False, True, False]))
    assert found["window"].tolist() == ["idle", "level 2", "idle (2)", "level 4"]
    assert found["load"].tolist() == ["idle", "level 2", "idle", "level 4"]
    assert found["kind"].tolist() == ["idle", "load", "idle", "load"]
    assert power_windows.level_windows(begin[:0], end[:0], np.zeros(0, bool)).empty


def test_the_whole_log_is_a_window():
    found = power_windows.whole_log(5, 9)
    assert found[["window", "kind", "source", "begin_ns", "end_ns"]].to_numpy().tolist() == [
        ["run", "run", "log", 5, 9]
    ]
