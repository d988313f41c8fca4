"""A cause says in one sentence what costs how much, on what evidence, and what to do first."""

import pytest

from profsvc.analysis.causes.sentence import amount, evidence_of, evidence_text, sentence

ROW = {
    "cause": "grid_too_small", "title": "Grid too small", "kind": "flaw", "saving_ns": 12.2e6, "saving_fraction": 0.988,
    "evidence": [
        {"counter": "grid_blocks", "value": 33.0, "unit": "block"},
        {"counter": "sm_count", "value": 132.0, "unit": "SM"},
    ],
    "first_step": "Launch more blocks.",
}  # fmt: skip


def test_a_flaw_says_what_it_costs() -> None:
    told = sentence(ROW, 12.35e6)
    assert told == "Grid too small (33 blocks on 132 SMs) cost 12.2 ms of 12.3 ms; launch more blocks."


def test_an_unknown_counter_is_left_out() -> None:
    assert sentence(ROW | {"evidence": ROW["evidence"][:1], "saving_ns": None}).startswith(
        "Grid too small cost 98.8 % of the time;"
    )


def test_a_limit_says_that_there_is_nothing_to_gain() -> None:
    limit = {
        "cause": "shared_memory_limit", "title": "At the limit of shared memory bandwidth", "kind": "limit",
        "saving_ns": 0.0, "saving_fraction": 0.0, "high": 0.1, "first_step": "Nothing to gain.",
        "evidence": [{"counter": "sol_l1_fraction", "value": 0.95, "unit": "1"}],
    }  # fmt: skip
    assert sentence(limit) == "At its limit: shared memory bandwidth (the pipe 95 % busy). Nothing to gain."
    assert sentence(limit | {"high": 0.4}).endswith(
        "Up to 40 % of the time is lost to causes of which none stands out."
    )


def test_a_limit_shows_its_busiest_units_and_nothing_that_was_idle() -> None:
    busy = {
        "issue_slot_utilization_fraction": 0.12,
        "pipe_tensor_elapsed_fraction": 0.97,
        "pipe_fma_elapsed_fraction": 0.05,
    }
    evidence = [{"counter": name, "value": value, "unit": "1"} for name, value in busy.items()]
    assert evidence_text("arithmetic_limit", evidence) == "tensor pipe 97 %, issue slots 12 % busy"
    memory = {"sol_l1_fraction": 0.2, "dram_throughput_fraction": 0.916, "sol_l2_fraction": 0.941}
    evidence = [{"counter": name, "value": value, "unit": "1"} for name, value in memory.items()]
    evidence += [{"counter": "dram_read_bytes", "value": 2.42e9, "unit": "byte"}]
    assert evidence_text("memory_limit", evidence) == "L2 at 94.1 %, DRAM at 91.6 %, 2.42 GB read from DRAM"
    atomics = [
        {"counter": "global_atomic_requests", "value": 0.0, "unit": "inst"},
        {"counter": "global_reduction_requests", "value": 47e6, "unit": "inst"},
    ]
    assert evidence_text("contended_global_atomics", atomics) == "47 M warp reductions"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (47e6, "inst", "47 M"),
        (9_999.0, "inst", "9999"),
        (10_950.0, "cycle", "10.9 k"),
        (131_072.0, "inst", "131 k"),
        (31.2, "sector/request", "31.2"),
        (0.004, "fraction", "0.4 %"),
        (2.5e9, "byte", "2.5 GB"),
        (0.0, "byte", "0 B"),
    ],
)
def test_amounts_have_three_digits_and_a_unit(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_evidence_is_numbers_with_a_unit() -> None:
    shown = evidence_of("grid_too_small", {"grid_blocks": 33.0, "sm_count": float("nan")})
    assert shown == [{"counter": "grid_blocks", "value": 33.0, "unit": "block"}]
