"""Findings that are one event: how many kernels make a change of all."""

import numpy as np
import pytest

from profsvc.analysis.changes.events import Siblings, find_events
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
    events = find_events(found, lambda row: KERNELS, {}, [Siblings(RUN[:2], RUN[2:], others)])
    assert [event["kind"] for event in events] == ([kind] if kind else [])
    if kind and others:
        (event,) = events
        assert (event["leaning"], event["asked"], event["settings"]) == (17, 17, [])
        way = "slower" if sure[0] > 0 else "faster"
        assert f"3 of 20 kernels {way} by 1.2 % together (all 17 others a little {way} too)" in event_text(event, found)


def test_a_kernel_that_changed_far_more_than_what_moved_all_is_no_part_of_it():
    found = [finding(0, 0.3), *(finding(number, 0.012) for number in range(1, 4))]
    (event,) = find_events(found, lambda row: KERNELS, {}, [Siblings(RUN[:2], RUN[2:], [0.009, 0.011] * 8)])
    assert event["members"] == [1, 2, 3]


def test_begins_within_two_nights_are_one_change():
    found = [finding(0, 0.012), finding(1, 0.011) | {"run_id": 37}, finding(2, 0.013) | {"run_id": 38}]
    assert find_events(found, lambda row: KERNELS, {}) == []
    (event,) = find_events(found, lambda row: KERNELS, {}, [Siblings(RUN[:2], (36, 37, 38), [0.01] * 17)])
    assert (event["members"], event["leaning"]) == ([0, 1, 2], 17)


def test_the_evaluation_says_how_the_others_moved():
    """Half an sd of all, of which three kernels have a step of six sd as well."""
    x = np.random.default_rng(20261210).standard_normal((KERNELS, NIGHTS, 1))
    x[:, -4:] += 1.5
    x[:3, -4:] += 6.0
    verdict = find_changes(points_of(x, np.arange(KERNELS)), [])
    assert {row["series"] for row in verdict.found} >= {"s000000", "s000001", "s000002"}
    (siblings,) = verdict.siblings
    assert siblings.board == RUN[:2]
    assert set(siblings.runs) <= {row["run_id"] for row in verdict.found}
    assert len(siblings.changes) == KERNELS - sum(row["run_id"] in siblings.runs for row in verdict.found)
    assert np.mean(np.array(siblings.changes) > 0) > 0.8
    assert np.median(siblings.changes) == pytest.approx(0.03, abs=0.015)  # 1.5 sd of 2 %
    assert find_changes(points_of(x[:, :-4], np.arange(KERNELS)), []).siblings == []
