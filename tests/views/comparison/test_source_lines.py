"""Source lines of two launches are matched by their text, and take their share of the time of each."""

from typing import Any

import pytest

from profsvc.views.comparison.source_lines import source_changes


def view(*lines: tuple[int, str, float]) -> dict[str, Any]:
    return {
        "lines": [
            {"file": "/src/a.cu", "source_line": number, "source_text": text, "sass_text": None, "address": None,
             "samples_fraction": share, "main_stall": "Wait", "instructions": 10, "l2_sectors": None}
            for number, text, share in lines
        ]
    }  # fmt: skip


def test_a_line_that_moved_is_the_same_line() -> None:
    before, after = view((3, "  s += a[i];", 0.75), (4, "}", 0.25)), view((9, "s += a[i];", 0.5), (10, "}", 0.5))
    rows = source_changes(before, after, (1e3, 500.0))
    assert [(row["source_line_before"], row["source_line"]) for row in rows] == [(3, 9), (4, 10)]
    assert [row["change_ns"] for row in rows] == pytest.approx([250 - 750, 250 - 250])


def test_equal_lines_are_matched_in_their_order() -> None:
    rows = source_changes(
        view((1, "x();", 0.1), (2, "x();", 0.9)), view((5, "x();", 0.2), (6, "x();", 0.8)), (1.0, 1.0)
    )
    assert {(row["source_line_before"], row["source_line"]) for row in rows} == {(1, 5), (2, 6)}


def test_a_line_of_one_launch_only_took_no_time_in_the_other() -> None:
    gone, new = source_changes(view((1, "slow();", 1.0)), view((1, "fast();", 1.0)), (800.0, 300.0))
    assert (gone["source_text"], gone["change_ns"], gone["source_line"]) == ("slow();", -800.0, None)
    assert (new["source_text"], new["change_ns"], new["source_line_before"]) == ("fast();", 300.0, None)


def test_without_durations_lines_are_ordered_by_their_shares() -> None:
    rows = source_changes(view((1, "a", 0.3), (2, "b", 0.5)), view((1, "a", 0.55), (2, "b", 0.45)), (None, 5.0))
    assert [row["change_ns"] for row in rows] == [None, None]
    assert rows[0]["time_ns"] == pytest.approx(0.55 * 5)
