"""Rows of CodeCarbon that repeat the total of their run, and rows that are separate."""

import pytest

from profsvc.formats.telemetry import codecarbon

HEADER = "timestamp,project_name,run_id,duration,emissions,cpu_energy,gpu_energy,ram_energy,energy_consumed\n"


def row(second, run, duration, wh):
    """A row that ends in a second of a minute, with a total energy in Wh."""
    parts = f"{wh / 2e3:.6f},{wh / 2e3:.6f},0,{wh / 1e3:.6f}"
    return f"2026-03-01T10:{second // 60:02}:{second % 60:02},work,{run},{duration},0.001,{parts}\n"


def totals(content):
    """The totals of each quantity in Wh, and the lines of the ranges."""
    names = {sensor["sensor_index"]: sensor["quantity"] for sensor in content.rows("sensors")}
    total = {s["sensor_index"] for s in content.rows("sensors") if s["name"] == "energy_consumed"}
    found = {}
    for sample in content.rows("samples"):
        if sample["sensor_index"] in total:
            found.setdefault(names[sample["sensor_index"]], []).append(round(sample["value"] / 3600, 3))
    return found.get("run energy", []), found.get("run energy so far", []), [r["line"] for r in content.rows("ranges")]


@pytest.mark.parametrize(
    ("rows", "whole", "so_far", "lines"),
    [
        pytest.param([(30, "a", 20, 1), (50, "a", 40, 2), (50, "a", 40.5, 2)], [2], [1, 2], [4], id="flushed, stopped"),
        pytest.param([(30, "a", 20, 1), (35, "b", 9, 5), (50, "a", 40, 2)], [5, 2], [1], [3, 4], id="two at once"),
        pytest.param([(30, "a", 20, 1), (50, "a", 20, 1), (70, "a", 20, 2)], [1, 1, 2], [], [2, 3, 4], id="since last"),
        pytest.param([(30, "a", 20, 3), (50, "a", 40, 2)], [3, 2], [], [2, 3], id="less than before"),
        pytest.param([(30, "", 20, 1), (50, "", 40, 2)], [1, 2], [], [2, 3], id="without the id of a run"),
    ],
)
def test_what_a_later_row_includes_is_not_energy_of_a_run(rows, whole, so_far, lines, read_all):
    content = read_all((HEADER + "".join(row(*values) for values in rows)).encode())
    assert totals(content) == (whole, so_far, lines)
    assert content.stored == len(rows)


def test_a_file_of_the_moment_has_the_energy_so_far(read_all):
    text = HEADER + row(30, "a", 20, 1)
    assert totals(read_all(text.encode())) == ([1], [], [2])


def test_many_runs_in_bounded_memory(read_all, monkeypatch):
    monkeypatch.setattr(codecarbon, "MAX_WAITING", 4)
    rows = [row(60 + place, f"r{place}", 1, place + 1) for place in range(20)]
    whole, so_far, lines = totals(read_all((HEADER + "".join(rows) + row(90, "r19", 12, 30)).encode()))
    assert whole == [*range(1, 20), 30]
    assert so_far == [20]
    assert lines == [*range(2, 21), 22]


def test_a_row_that_includes_one_stored_long_before_is_rejected(read_all, monkeypatch):
    monkeypatch.setattr(codecarbon, "MAX_WAITING", 3)
    others = "".join(row(40, f"r{place}", 1, 1) for place in range(5))
    content = read_all((HEADER + row(30, "a", 20, 1) + others + row(90, "a", 80, 4)).encode())
    (reject,) = content.rows("rejects")
    assert reject["line"] == 8
    assert reject["reason"].startswith("it includes line 2 of the same run, more than 3 rows before")
    assert totals(content)[0] == [1] * 6
