"""Kernels on the tensor pipe: their time is their operations, and no mended version passes the ceiling."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import pipeline, specs, store
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.launch_potential import launch_potentials
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.tensor_work import TENSOR_TYPES, has_tensor_work, tensor_time, uses_single_warps
from profsvc.analysis.potential.useful_time import UNITS, may_need_less, useful_times
from profsvc.formulas.numerics.flags import Flag

FOLDER = Path(__file__).parents[3] / "fixtures" / "tensor"
CASES = pd.read_csv(FOLDER / "cases.csv").astype({"mended_by": "Int64"})
PRODUCTS = CASES[CASES["type"].notna() & CASES["flop"].notna()]
# Dense operations of an SM and cycle, as the architecture white paper of Hopper prints them.
RATES = {"fp16": 4096, "bf16": 4096, "tf32": 2048, "fp64": 256, "fp8": 8192, "int8": 8192}
H200 = specs.figures("NVIDIA H200", "9.0")
# Kernels that libraries have from the time before warp groups; the others of Hopper have instructions of these.
OF_SINGLE_WARPS = [1, 2, 3, 6, 8, 13, 17, 18, 20]
SINGLE_WARPS = "single_warp_matrices"
PAIRS = FOLDER.parent / "tensor_pairs"
BLIND = ("mwp_cwp", "benefit", "latency_hiding")


@pytest.fixture(scope="module")
def tensor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = store.open_store(str(tmp_path_factory.mktemp("tensor") / "store.sqlite"), pooled=True)
    with (FOLDER / "ncu_raw_base.csv.gz").open("rb") as stream:
        pipeline.ingest(engine, stream, "tensor", store.RunInfo(name="tensor"))
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def counters(tensor: Engine) -> pd.DataFrame:
    return store.counters(tensor, 1).reset_index(drop=True)


@pytest.fixture(scope="module")
def bounds(tensor: Engine) -> pd.DataFrame:
    rows = [row for row in store.select(tensor, "v1_potential") if row["launch_id"] is not None]
    return pd.DataFrame(rows).sort_values("launch_id").reset_index(drop=True)


@pytest.mark.parametrize("place", PRODUCTS.index, ids=list(PRODUCTS["case"]))
def test_useful_tensor_time_is_operations_at_the_peak_rate_of_their_type(counters: pd.DataFrame, place: int) -> None:
    case, launch = CASES.loc[place], counters.loc[[place]]
    seconds = tensor_time(Counts(launch), peaks(launch, H200)[0])[0]
    clock = launch["sm_clock_hz"].iloc[0]
    needed = case["flop"] / (132 * clock * RATES[case["type"]] * (1 + case["sparse"]))
    # Tiles are filled up with zeros, and the clock is that of another pass.
    assert 0.96 < seconds[0] / needed < 1.06
    assert useful_times(launch, peaks(launch, H200)[0])["tensor"].iloc[0] == pytest.approx(seconds[0] * 1e9)


def test_the_pipe_is_busy_longer_with_older_instructions_for_the_same_work(counters: pd.DataFrame) -> None:
    busy = counters["pipe_tensor_elapsed_fraction"] * counters["duration_ns"]
    time = useful_times(counters, peaks(counters, H200)[0])["tensor"]
    assert busy[1] > 1.7 * time[1]
    assert busy[0] == pytest.approx(time[0], rel=0.02)


@pytest.mark.parametrize("place", CASES.index[CASES["mended_by"].notna()])
def test_no_mended_version_passes_the_ceiling(bounds: pd.DataFrame, place: int) -> None:
    achieved = bounds["duration_ns"][place] / bounds["duration_ns"][CASES["mended_by"][place]]
    assert bounds["speedup_ceiling"][place] > achieved
    assert bounds["ceiling_flags"][place] == ""


def test_versions_of_one_product_imply_one_least_time(bounds: pd.DataFrame, counters: pd.DataFrame) -> None:
    # Cycles, as the clock of a board falls when its tensor pipes work.
    least = bounds["duration_ns"] / bounds["speedup_ceiling"] * counters["sm_clock_hz"]
    for place in (1, 2, 3):
        assert least[place] == pytest.approx(least[0], rel=0.08)


def test_a_pipe_that_moves_constants_or_packed_halves_multiplies_no_matrices(counters: pd.DataFrame) -> None:
    has_type = CASES["type"].notna().to_numpy()
    assert has_tensor_work(Counts(counters)).tolist() == has_type.tolist()
    kinds = [f"tensor_ops_{kind}" for kind in TENSOR_TYPES if f"tensor_ops_{kind}" in counters]
    bare = counters[["duration_ns", "inst_tensor_warp", "pipe_tensor_elapsed_fraction"]]
    assert has_tensor_work(Counts(bare))[has_type].sum() >= 16
    assert len(kinds) >= 6


def test_the_models_of_operations_answer_and_those_of_warps_refuse(tensor: Engine, counters: pd.DataFrame) -> None:
    rows = pd.DataFrame(store.select(tensor, "v1_models", form="consistent"))
    rows = rows[rows["launch_id"].notna()]
    rows["place"] = rows["launch_id"].rank(method="dense") - 1
    refused = pd.DataFrame(store.select(tensor, "v1_models", value=None))
    for place in PRODUCTS.index:
        own = rows[(rows["place"] == place) & rows["value"].notna()].set_index(["model", "quantity"])["value"]
        time_ns = counters["duration_ns"][place]
        done = counters[[name for name in counters if name.startswith("tensor_ops_")]].loc[place].sum()
        assert done / time_ns * 1e9 <= own["roofline", "attainable"] * 1.01
        assert own["roofline", "time_ns"] <= time_ns * 1.01
        assert own["time_bound", "t_min_ns"] <= time_ns * 1.01
        assert own["ryoo", "potential_flop_per_s"] * time_ns * 1e-9 >= done * 0.99
        assert own["throughput", "time_ns"] > 0.4 * own["roofline", "time_ns"]
        kind = CASES["type"][place]
        assert own["roofline", f"tensor_{kind}_op_per_s"] <= own["roofline", f"tensor_{kind}_peak_op_per_s"] * 2
        assert not set(BLIND) & set(own.index.get_level_values(0))
    assert set(refused[refused["model"].isin(BLIND)]["reason"]) == {"the model has no cost for matrix instructions"}


def test_operations_that_may_have_been_sparse_make_a_floor(counters: pd.DataFrame) -> None:
    bare = counters.drop(columns=[name for name in counters if name.startswith("tensor_sparse_ops_")])
    figures, _ = peaks(bare, H200)
    has_type = CASES["type"].notna().to_numpy()
    loose = may_need_less(bare, figures)["tensor"].to_numpy()
    double = (CASES["type"] == "fp64").to_numpy()
    assert loose.tolist() == (has_type & ~double).tolist()
    shares = dict.fromkeys(UNITS, 0.8)
    found, full = (launch_potentials(one, figures, shares)[0] for one in (bare, counters))
    assert (found["speedup_ceiling"] <= full["speedup_ceiling"] * 1.001).all()
    assert found["ceiling_flags"][0] & int(Flag.LOWER_BOUND)


def test_matrices_that_nobody_counted_take_the_time_in_which_their_pipe_was_busy(counters: pd.DataFrame) -> None:
    bare = counters.drop(columns=[name for name in counters if name.startswith(("tensor_ops_", "tensor_sparse_"))])
    figures, _ = peaks(bare, H200)
    has_type = has_tensor_work(Counts(bare))
    assert may_need_less(bare, figures)["tensor"].to_numpy()[has_type].all()
    busy = bare["pipe_tensor_elapsed_fraction"] * bare["duration_ns"]
    assert np.allclose(useful_times(bare, figures)["tensor"][has_type], busy[has_type])


def test_a_peak_that_the_export_does_not_print_is_that_of_the_catalogue(counters: pd.DataFrame) -> None:
    long = counters[counters["duration_ns"] > 5e4]  # of short launches the clocks that two passes saw differ
    bare = long.drop(columns=[name for name in counters if name.endswith("_peak_op_per_s")])
    ours, theirs = peaks(bare, H200)[0], peaks(long, H200)[0]
    for kind in RATES:
        name = f"tensor_{kind}_peak_op_per_s"
        assert ours[name].to_numpy() == pytest.approx(theirs[name].to_numpy(), rel=0.03)


def test_mended_kernels_stay_below_their_ceilings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Spills, an array in local memory, atomics, expanded functions: what they cost is waste."""
    folder = FOLDER.parent / "mended"
    engine = store.open_store(str(tmp_path_factory.mktemp("mended") / "store.sqlite"), pooled=True)
    with (folder / "ncu_raw_base.csv.gz").open("rb") as stream:
        pipeline.ingest(engine, stream, "mended", store.RunInfo(name="mended"))
    rows = [row for row in store.select(engine, "v1_potential") if row["launch_id"] is not None]
    engine.dispose()
    found: dict[str, Any] = {row["kernel_short"]: row for row in rows}
    times = pd.read_csv(folder / "timings.csv").set_index("label")["median_us"]
    for kernel in ("spill", "local_array", "atomics", "powf"):
        assert found[f"{kernel}_bad"]["speedup_ceiling"] > times[f"{kernel}_bad"] / times[f"{kernel}_good"]
    # Indices that differ from lane to lane leave next to no data and arithmetic: no ceiling is better than one passed.
    assert found["const_divergent"]["speedup_ceiling"] is None


def test_rows_of_half_precision_need_no_tensor_cores(tensor: Engine) -> None:
    causes = pd.DataFrame(store.select(tensor, "v1_causes"))
    rows = causes[causes["kernel_short"].isin(("vectorized_layer_norm_kernel", "cunn_SoftMaxForwardReg"))]
    assert rows["launch_id"].nunique() == 2
    assert "tensor_cores_unused" not in set(rows["cause"])


def test_matrices_of_single_warps_are_told_from_those_of_warp_groups(counters: pd.DataFrame) -> None:
    figures, _ = peaks(counters, H200)
    assert np.flatnonzero(uses_single_warps(Counts(counters), figures)).tolist() == OF_SINGLE_WARPS
    bare = counters.drop(columns=["inst_tensor_gmma_warp", "shared_gmma_transactions"])
    assert np.flatnonzero(uses_single_warps(Counts(bare), figures)).tolist() == OF_SINGLE_WARPS
    few = counters.loc[[18]].assign(block_threads=64.0)
    assert uses_single_warps(Counts(few), peaks(few, H200)[0]).tolist() == [True], "blocks can be larger"


@pytest.mark.parametrize(
    "other",
    [
        {"stall_gmma_warp_cycles": 9.0},
        {"stall_gmma_warp_cycles": np.nan, "stall_gmma_cycles_per_issue": np.nan, "inst_tensor_gmma_warp": np.nan,
         "shared_gmma_transactions": np.nan},
        {"shared_load_inst_warp": 0.0, "shared_ldsm_inst_warp": 0.0},
        {"tensor_ops_fp64": 1e12},
    ],
    ids=["of a group", "nobody counted", "in registers", "doubles"],
)  # fmt: skip
def test_where_warp_groups_cannot_be_known_to_help_none_is_missed(
    counters: pd.DataFrame, other: dict[str, float]
) -> None:
    flash = counters.loc[[18]]
    assert uses_single_warps(Counts(flash), peaks(flash, H200)[0]).tolist() == [True]
    assert uses_single_warps(Counts(flash.assign(**other)), peaks(flash, H200)[0]).tolist() == [False]
    ampere = peaks(flash, specs.figures("NVIDIA A100-SXM4-80GB", "8.0"))[0]
    assert uses_single_warps(Counts(flash), ampere).tolist() == [False]


def test_kernels_of_single_warps_have_that_cause_first_or_second(tensor: Engine) -> None:
    rows = pd.DataFrame(store.select(tensor, "v1_causes"))
    rows["place"] = rows["launch_id"].rank(method="dense").astype(int) - 1
    named = rows[(rows["cause"] == SINGLE_WARPS) & (rows["rank"] <= 2)]["place"]
    assert sorted(named) == OF_SINGLE_WARPS
    assert set(rows[rows["cause"] == SINGLE_WARPS]["place"]) == set(OF_SINGLE_WARPS)


def test_potential_of_single_warps_is_about_what_warp_groups_achieve(tensor: Engine, bounds: pd.DataFrame) -> None:
    own = CASES["mended_by"].notna().to_numpy() & bounds.index.isin(OF_SINGLE_WARPS)
    achieved = bounds["duration_ns"][own].to_numpy() / bounds["duration_ns"][CASES["mended_by"][own]].to_numpy()
    ratio = np.log(bounds["speedup"][own].to_numpy() / achieved)
    assert own.sum() == 8
    assert np.median(np.abs(ratio)) < 0.2
    assert np.abs(ratio).max() < 0.3


def test_pairs_have_that_cause_first_or_second_and_about_its_potential(engine: Engine) -> None:
    with (PAIRS / "ncu_raw_base.csv.gz").open("rb") as stream:
        pipeline.ingest(engine, stream, "pairs", store.RunInfo(name="pairs"))
    rows = pd.DataFrame(store.select(engine, "v1_causes"))
    rows["place"] = rows["launch_id"].rank(method="dense").astype(int) - 1
    variants = pd.read_csv(PAIRS / "cases.csv")["variant"]
    own = rows[rows["cause"] == SINGLE_WARPS].set_index("place")["rank"]
    assert sorted(own.index) == variants.index[variants == "a"].tolist()
    assert ((own == 1).sum(), (own <= 2).sum()) == (8, 10)
    found = [row for row in store.select(engine, "v1_potential") if row["launch_id"] is not None]
    table = pd.DataFrame(found).sort_values("launch_id")
    duration, slow = table["duration_ns"].to_numpy(), (variants == "a").to_numpy()
    ratio = np.log(table["speedup"].to_numpy()[slow] * duration[~slow] / duration[slow])
    assert np.median(np.abs(ratio)) < 0.2
    assert np.abs(ratio).max() < 0.3
