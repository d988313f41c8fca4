"""Findings that are one event: how many kernels make a change of all."""

import numpy as np
import pytest

from profsvc.analysis.changes.events import find_events
from profsvc.analysis.changes.nightly import find_changes
from profsvc.reports.nightly.events import event_text
from tests.benchmarks.detection import points_of

KERNELS, NIGHTS = 20, 40
RUN = ("suite", "NVIDIA H200", 36)


def finding(number: int, change: float) -> dict:
    """Return a finding of a kernel."""
    name = f"k{number}"
    return {"project": RUN[0], "device": RUN[1], "run_id": RUN[2], "kind": "duration", "kernel": name, "subject": name,
            "series": name, "before": 100.0, "after": 100.0 * (1.0 + change), "differences": []}  # fmt: skip


@pytest.mark.parametrize(
    ("sure", "others", "kind"),
    [
        ([0.012] * 3, [0.01] * 17, "together"),
        ([0.012] * 3, [], None),  # three of twenty alone
        ([0.012] * 3, [0.01, -0.01] * 8, None),  # the others go both ways
        ([0.012] * 2, [0.01] * 18, None),
        ([0.2] * 3, [0.01] * 17, None),  # far more than what moved all
        ([-0.012] * 3, [-0.01] * 17, "together"),
        ([0.012] * 12, [], "together"),
    ],
)
def test_few_sure_kernels_are_one_change_where_the_others_lean_as_they_do(sure, others, kind):
    found = [finding(number, change) for number, change in enumerate(sure)]
    events = find_events(found, lambda row: KERNELS, {}, {RUN: others})
    assert [event["kind"] for event in events] == ([kind] if kind else [])
    if kind and others:
        (event,) = events
        assert (event["leaning"], event["asked"], event["settings"]) == (17, 17, [])
        way = "slower" if sure[0] > 0 else "faster"
        assert f"3 of 20 kernels {way} by 1.2 % together (all 17 others a little {way} too)" in event_text(event, found)


def test_a_kernel_that_changed_far_more_than_what_moved_all_is_no_part_of_it():
    found = [finding(0, 0.3), *(finding(number, 0.012) for number in range(1, 4))]
    (event,) = find_events(found, lambda row: KERNELS, {}, {RUN: [0.009, 0.011] * 8})
    assert event["members"] == [1, 2, 3]


def test_the_evaluation_says_how_the_others_moved():
    """Half an sd of all, of which three kernels have a step of six sd as well."""
    x = np.random.default_rng(20261210).standard_normal((KERNELS, NIGHTS, 1))
    x[:, -4:] += 1.5
    x[:3, -4:] += 6.0
    verdict = find_changes(points_of(x, np.arange(KERNELS)), [])
    assert {row["series"] for row in verdict.found} >= {"s000000", "s000001", "s000002"}
    (changes,) = verdict.others.values()
    assert list(verdict.others) == [(*RUN[:2], NIGHTS - 3)]
    assert len(changes) == KERNELS - sum(row["run_id"] == NIGHTS - 3 for row in verdict.found)
    assert np.mean(np.array(changes) > 0) > 0.8
    assert np.median(changes) == pytest.approx(0.03, abs=0.015)  # 1.5 sd of 2 %
    assert find_changes(points_of(x[:, :-4], np.arange(KERNELS)), []).others == {}
