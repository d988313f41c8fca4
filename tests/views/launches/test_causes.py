"""Causes beside the rules of Nsight Compute."""

from typing import Any

import pytest

from profsvc.views.launches.causes import LESS, LOCAL, beside, hints

CAUSE = {
    "cause": "uncoalesced_loads", "title": "Uncoalesced global loads", "kind": "flaw", "saving_ns": 30.0,
    "saving_fraction": 0.3, "low": 0.2, "high": 0.4, "evidence": [], "first_step": "Do it.",
}  # fmt: skip
OTHER = CAUSE | {"cause": "barriers", "title": "Barriers"}
ASSUMED = "the estimate assumes that time shrinks with the sectors that the loads and stores ask L2 for"
ELSEWHERE = "no wait or work of this cause was counted; the time goes to: Barriers"


def rule(estimate: float | None, kind: str = "global", name: str = "UncoalescedGlobalAccess") -> dict[str, Any]:
    return {"rule": name, "kind": kind, "estimated_saving_fraction": estimate}


@pytest.mark.parametrize(
    ("given", "found", "why"),
    [
        (rule(0.3), [CAUSE], ""), (rule(0.34), [CAUSE | {"high": 0.31}], ""),
        (rule(0.7), [CAUSE], ASSUMED), (rule(0.1), [CAUSE], LESS),
        (rule(0.7, "local"), [CAUSE], LOCAL), (rule(None), [CAUSE], ""), (rule(0.7), [], ""),
        (rule(0.7), [OTHER], f"{ASSUMED}; {ELSEWHERE}"), (rule(0.7, name="NoSuchRule"), [CAUSE], ""),
    ],
)  # fmt: skip
def test_a_rule_says_why_it_differs(given: dict[str, Any], found: list[dict[str, Any]], why: str) -> None:
    (row,) = beside([given], found)
    assert row["difference"] == why
    assert row["cause"] == (
        "Uncoalesced global loads" if found and found[0] != OTHER and row["rule"] != "NoSuchRule" else ""
    )


def test_what_an_estimate_assumes_stands_beside_the_counters() -> None:
    counted = {"sol_l2_fraction": 0.2, "dram_throughput_fraction": None}
    (row,) = beside([rule(0.7)], [CAUSE], counted)
    assert row["difference"] == f"{ASSUMED}; counted: L2 at 20 %"
    stalled, small = beside([rule(0.7, name="CPIStall"), rule(0.05, name="CPIStall")], [CAUSE], counted)
    assert stalled["difference"].endswith("nor for anything else instead; counted: L2 at 20 %")
    assert small["difference"] == ""


def test_what_saves_less_than_one_per_cent_is_no_hint() -> None:
    small = OTHER | {"saving_fraction": 0.009}
    limit = CAUSE | {"cause": "memory_limit", "title": "At the limit of memory bandwidth", "kind": "limit",
                     "saving_fraction": 0.0}  # fmt: skip
    assert [one["title"] for one in hints([CAUSE, small, limit])] == ["Uncoalesced global loads"]
    assert [one["title"] for one in hints([limit, small])] == ["memory bandwidth"]
