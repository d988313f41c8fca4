"""Kernels that were tuned step by step: the first cause of a version is what the next version removes."""

from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import create_engine

from profsvc import specs, store
from profsvc.analysis.causes.rows import launch_causes
from profsvc.analysis.causes.sentence import evidence_of, sentence
from profsvc.analysis.potential.launch_potential import launch_potentials
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.useful_time import UNITS
from profsvc.specs.advice.causes import causes

H200 = specs.figures("NVIDIA H200", "9.0")
STEPS = [
    ("reduce_v1_divergent", "reduce_v2_bankconflict", "integer_division"),
    ("reduce_v3_sequential", "reduce_v4_firstadd", "predicated_off_threads"),
    ("reduce_v4_firstadd", "reduce_v5_unrolllast", "predicated_off_threads"),
    ("transpose_naive_rd", "transpose_tile_pad", "uncoalesced_stores"),
    ("transpose_naive_wr", "transpose_tile_pad", "uncoalesced_loads"),
    ("transpose_tile_conflict", "transpose_tile_pad", "bank_conflicts"),
    ("aos_scalar", "aos_split16", "uncoalesced_loads"),
    ("aos_split16", "aos_soa", "uncoalesced_loads"),
    ("rowsum_thread", "rowsum_warp", "uncoalesced_loads"),
    ("histogram_global", "histogram_shared", "contended_global_atomics"),
    ("dot_atomic", "dot_tree_mod", "contended_global_atomics"),
    ("dot_tree_mod", "dot_shfl_f4", "integer_division"),
    ("intdiv_div64", "intdiv_div32", "integer_division"),
    ("intdiv_div32", "intdiv_grid3d", "integer_division"),
    ("imbalance_static", "imbalance_many", "sm_imbalance"),
    ("branchy_lane", "branchy_sorted", "thread_divergence"),
    ("ilp_1", "ilp_2", "dependent_instructions"),
    ("ilp_2", "ilp_4", "dependent_instructions"),
    ("nbody_shared", "nbody_shared_u4", "dependent_instructions"),
]
TUNED = ("rowsum_warp", "rowsum_block_f4", "saxpy_f4", "scan_block_shfl_f4", "dot_shfl_f4", "reduce_v7_multielement")


def causes_of(url: str) -> pd.DataFrame:
    """Return the causes of the launches of the first run, with the kernel of each."""
    engine = create_engine(url)
    launches = pd.DataFrame(store.select(engine, "v1_launches", run_id=1)).set_index("launch_id")
    counters = store.counters(engine, 1)
    engine.dispose()
    figures = peaks(counters, H200)[0]
    bounds = launch_potentials(counters, figures, dict.fromkeys(UNITS, 0.8))[0]
    table = launch_causes(counters, figures, bounds)
    known = [causes()[name] for name in table["cause"]]
    values = counters.to_dict("index")
    pairs = zip(table["launch_id"], table["cause"], strict=True)
    return table.assign(
        title=[cause.title for cause in known],
        first_step=[cause.first_step for cause in known],
        evidence=[evidence_of(cause, values[launch]) for launch, cause in pairs],
        kernel=table["launch_id"].map(launches["kernel_short"]),
        duration_ns=table["launch_id"].map(launches["duration_ns"]),
    )


@pytest.fixture(scope="module")
def tuned(demo, held_out_store: Path) -> pd.DataFrame:
    return pd.concat([causes_of(str(demo.url)), causes_of(f"sqlite:///{held_out_store}")])


def first_cause(tuned: pd.DataFrame, kernel: str) -> str:
    return str(tuned[tuned["kernel"] == kernel]["cause"].iloc[0])


def most_removed(tuned: pd.DataFrame, before: str, after: str) -> str:
    """Return the cause whose saving the step to ``after`` made smaller by most."""
    first, then = (tuned[tuned["kernel"] == name].set_index("cause")["saving_ns"] for name in (before, after))
    return str(first.sub(then.reindex(first.index, fill_value=0)).idxmax())


@pytest.mark.parametrize(("before", "after", "cause"), STEPS)
def test_the_first_cause_is_what_the_next_step_removes(
    tuned: pd.DataFrame, before: str, after: str, cause: str
) -> None:
    assert (first_cause(tuned, before), most_removed(tuned, before, after)) == (cause, cause)


def test_a_step_may_remove_the_second_cause_and_leave_the_first(tuned: pd.DataFrame) -> None:
    conflicting, sequential = "reduce_v2_bankconflict", "reduce_v3_sequential"
    assert first_cause(tuned, conflicting) == first_cause(tuned, sequential) == "predicated_off_threads"
    assert most_removed(tuned, conflicting, sequential) == "bank_conflicts"


@pytest.mark.parametrize("kernel", TUNED)
def test_the_last_step_has_nothing_to_gain(tuned: pd.DataFrame, kernel: str) -> None:
    own = tuned[tuned["kernel"] == kernel]
    assert list(own["kind"][:1]) == ["limit"]


def test_each_first_cause_is_a_sentence(tuned: pd.DataFrame) -> None:
    for row in tuned[tuned["rank"] == 1].to_dict("records"):
        told = sentence(row, row["duration_ns"])
        assert told.startswith("At its limit: " if row["kind"] == "limit" else row["title"])
        assert told.endswith(".")
        assert "{" not in told
        assert ("cost" in told) == (row["kind"] == "flaw")
