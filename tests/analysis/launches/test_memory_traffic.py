"""What global accesses ask of L1 and L2, and what those move for them: of the same accesses on both sides."""

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine

from profsvc import pipeline, specs, store
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.launches import memory_traffic
from profsvc.analysis.launches.memory_traffic import l1_traffic, l2_traffic
from profsvc.analysis.potential.useful_time import requested_bytes
from tests.conftest import ROOT

SHARED = ROOT.parent / "shared" / "corpus" / "1_nvprof"
needs_corpus = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the public exports are not at {SHARED}")
# A copy of 1 MiB by the lanes of warps, a sector of 32 bytes for each 8 asked for.
PLAIN = {
    "global_load_bytes_requested": 2.0**20, "global_store_bytes_requested": 2.0**20, "global_load_inst_warp": 8192.0,
    "global_store_inst_warp": 8192.0, "global_load_sectors": 2.0**17, "global_load_l1_miss_sectors": 2.0**17,
    "global_store_sectors": 2.0**15, "l2_tex_sectors": 2.0**17 + 2.0**15, "l1_tag_requests_global": 2.0**17,
    "l2_to_l1_read_bytes": 2.0**22, "l1_to_l2_write_bytes": 2.0**20, "global_ldgsts_bytes_requested": 0.0,
    "global_ldgsts_inst_warp": 0.0, "global_ldgsts_sectors": 0.0, "tma_load_bytes": 0.0, "tma_store_bytes": 0.0,
    "local_load_sectors": 0.0, "local_store_sectors": 0.0, "duration_ns": 1e5,
}  # fmt: skip


def counts(**changes: float) -> Counts:
    table = pd.DataFrame([PLAIN | changes])
    return Counts(table.drop(columns=[name for name, value in changes.items() if np.isnan(value)]))


def share(c: Counts) -> float:
    traffic = l2_traffic(c)
    return float(traffic.asked[0] / traffic.moved[0])


def test_plain_accesses_are_what_they_were() -> None:
    assert share(counts()) == pytest.approx(2 / 5)
    assert l2_traffic(counts()).part[0] == 1


def test_bulk_copies_move_what_they_were_asked_for_beside_the_accesses_of_lanes() -> None:
    bulk = 1e9
    copies = counts(tma_load_bytes=bulk, l2_to_l1_read_bytes=bulk + 2.0**22, l2_tex_sectors=bulk / 32)
    assert share(copies) == pytest.approx(1, abs=1e-2)
    l1 = l1_traffic(copies)
    assert l1.asked[0] / l1.moved[0] > 0.95
    # Many blocks that share one read of L2 move less there than they receive.
    assert share(counts(tma_load_bytes=bulk, l2_to_l1_read_bytes=bulk, l2_tex_sectors=bulk / 64)) > 0.99


def test_bulk_copies_that_nobody_counted_leave_nothing_to_say() -> None:
    unknown = {"tma_load_bytes": np.nan, "tma_store_bytes": np.nan}
    known = l2_traffic(counts(**unknown, tma_load_inst_warp=9.0))
    assert (np.isnan(known.asked[0]), known.unseen[0]) == (True, memory_traffic.NO_BULK_SIZE)
    others = l2_traffic(counts(**unknown, l2_to_l1_read_bytes=1e9))
    assert (np.isnan(others.asked[0]), others.unseen[0]) == (True, memory_traffic.MOSTLY_UNCOUNTED)


def test_asynchronous_copies_are_among_the_loads() -> None:
    copied = {"global_load_bytes_requested": 0.0, "global_load_inst_warp": 0.0, "global_ldgsts_inst_warp": 8192.0,
              "global_ldgsts_bytes_requested": 2.0**22, "global_ldgsts_sectors": 2.0**17}  # fmt: skip
    assert share(counts(**copied)) == pytest.approx(1)
    assert requested_bytes(counts(**copied))[0][0] == 2.0**22
    for lacking in ({}, {"global_ldgsts_inst_warp": np.nan, "global_ldgsts_sectors": np.nan}):
        none = counts(**copied | {"global_ldgsts_bytes_requested": np.nan} | lacking)
        assert l2_traffic(none).unseen[0] == l1_traffic(none).unseen[0] == memory_traffic.NO_COPY_SIZE
        assert requested_bytes(none)[0][0] == 2.0**22  # all that they moved


def test_local_memory_is_no_access_that_could_be_coalesced() -> None:
    spilled = counts(local_load_sectors=1e6, local_store_sectors=1e6, l2_tex_sectors=2e6 + 2.0**17 + 2.0**15,
                     l2_to_l1_read_bytes=2.0**22 + 32e6, l1_to_l2_write_bytes=2.0**20 + 32e6)  # fmt: skip
    assert share(spilled) == pytest.approx(2 / 5)
    assert l2_traffic(spilled).part[0] < 0.1
    assert requested_bytes(spilled)[0][0] == PLAIN["global_load_bytes_requested"]


def test_sectors_that_several_lanes_use_are_used() -> None:
    """Two loads of 4 of the 8 bytes that are used of a sector, the second a hit: all the same bytes, or all others."""
    shared = counts(global_load_sectors=2.0**18, global_load_l1_hit_fraction=0.5)
    assert share(shared) == share(counts())


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    engine = store.open_store(str(tmp_path_factory.mktemp("traffic") / "store.sqlite"), pooled=True)
    for name in ("tensor", "mended"):
        with (ROOT / "fixtures" / name / "ncu_raw_base.csv.gz").open("rb") as stream:
            pipeline.ingest(engine, stream, name, store.RunInfo(name=name))
    rows = pd.DataFrame(store.select(engine, "v1_criteria"))
    names = pd.DataFrame(store.select(engine, "v1_launches"))[["launch_id", "kernel_short"]]
    rows = rows[rows["launch_id"].notna()].merge(names)
    causes = pd.DataFrame(store.select(engine, "v1_causes"))
    causes = causes.pivot(index="launch_id", columns="cause", values="saving_fraction").fillna(0.0)
    engine.dispose()
    return rows.merge(causes, left_on="launch_id", right_index=True, how="left")


@pytest.mark.parametrize("kernel", ["nvjet", "cudnn_generated", "pytorch_flash", "flash_fwd", "fmha", "sm90_xmma"])
def test_kernels_that_experts_tuned_use_every_sector(found: pd.DataFrame, kernel: str) -> None:
    own = found[found["kernel_short"].str.startswith(kernel) & (found["criterion"] == "l2_granularity")]
    assert (own["value"] > 0.99).all()
    advised = found[found["kernel_short"].str.startswith(kernel) & found["criterion"].str.endswith("granularity")]
    assert (advised["speedup"] < 1.01).all()


def test_spills_are_called_so_and_not_bytes_nobody_asked_for(found: pd.DataFrame) -> None:
    own = found.drop_duplicates("launch_id").set_index("kernel_short")
    for kernel, cause in (("spill", "register_spills"), ("local_array", "local_memory")):
        assert own[cause][f"{kernel}_bad"] > 0.2
        assert own["uncoalesced_loads"][f"{kernel}_bad"] < 0.05
        assert own[cause][f"{kernel}_good"] == 0


def derived(capability: str, **metrics: float) -> dict[str, float]:
    given = {name: np.array([value]) for name, value in metrics.items()}
    values, _ = specs.derive_counters("nvprof", capability, given)
    return {name: float(column[0]) for name, column in values.items()}


def test_l2_of_kepler_serves_l1_and_textures() -> None:
    both = {
        "l2_l1_read_transactions": 204_800.0,
        "l2_tex_read_transactions": 1000.0,
        "l2_l1_write_transactions": 196_608.0,
    }
    assert derived("3.5", **both)["l2_tex_read_sectors"] == 205_800
    assert derived("3.5", **both)["l2_tex_write_sectors"] == 196_608
    assert derived("3.5", **both)["l2_to_l1_read_bytes"] == 32 * 205_800
    assert derived("6.0", l2_tex_read_transactions=1000.0)["l2_tex_read_sectors"] == 1000


def test_the_arithmetic_unit_of_kepler_is_named_by_its_instructions() -> None:
    lanes = {"@fp32_lanes_per_sm": 192.0, "@fp64_lanes_per_sm": 8.0}
    double = derived("3.0", alu_fu_utilization=1.0, inst_fp_64=7e9, inst_fp_32=2e8, inst_integer=7e8, **lanes)
    assert double["fu_fp64_utilization_fraction"] == 1
    assert max(double["fu_fp32_utilization_fraction"], double["fu_alu_utilization_fraction"]) < 0.01
    integer = derived("3.5", alu_fu_utilization=0.7, inst_fp_64=0.0, inst_fp_32=2e6, inst_integer=44e6, **lanes)
    assert integer["fu_alu_utilization_fraction"] == pytest.approx(0.7)
    assert integer["fu_fp64_utilization_fraction"] == 0
    assert integer["fu_fp32_utilization_fraction"] < 0.05


def test_the_single_precision_unit_of_maxwell_and_pascal_is_that_of_integers_too() -> None:
    integer = derived("6.1", single_precision_fu_utilization=0.3, inst_fp_32=0.0, inst_integer=1e9)
    assert (integer["fu_fp32_utilization_fraction"], integer["fu_alu_utilization_fraction"]) == (0, 0.3)
    single = derived("5.2", single_precision_fu_utilization=0.5, inst_fp_32=3e8, inst_integer=3e7)
    assert (single["fu_fp32_utilization_fraction"], single["fu_alu_utilization_fraction"]) == (0.5, pytest.approx(0.05))
    assert derived("6.1", single_precision_fu_utilization=0.3)["fu_fp32_utilization_fraction"] == 0.3


EFFICIENCY = ("gld_efficiency", "gst_efficiency", "gld_throughput", "gst_throughput")
# nvprof prints its efficiencies from other passes than the throughputs: they differ by what passes differ.
PASSES = 0.03


@needs_corpus
@pytest.mark.parametrize(
    "name",
    ["backprop_metrics_k40", "lavaMD_metrics", "histogram_metrics", "BlackScholes_metrics"],
)
def test_l2_granularity_is_the_efficiency_that_nvprof_derives(tmp_path: object, name: str) -> None:
    engine: Engine = store.open_store(f"{tmp_path}/store.sqlite", pooled=True)
    with (SHARED / f"leimingyu__magus__{name}.csv").open("rb") as stream:
        pipeline.ingest(engine, stream, name, store.RunInfo(name=name))
    rows = pd.DataFrame(store.select(engine, "v1_criteria", criterion="l2_granularity")).dropna(subset=["kernel"])
    metrics = pd.DataFrame(store.select(engine, "v1_metrics"))
    potential = pd.DataFrame(store.select(engine, "v1_potential")).dropna(subset=["kernel"])
    engine.dispose()
    given = metrics[metrics["metric"].isin(EFFICIENCY)].pivot_table(index="kernel", columns="metric", values="value")
    loads, stores = given["gld_throughput"], given["gst_throughput"]
    theirs = (given["gld_efficiency"] * loads + given["gst_efficiency"] * stores) / (loads + stores)
    assert len(rows) >= 1
    for row in rows.itertuples():
        assert row.value == pytest.approx(theirs[row.kernel], abs=PASSES), row.kernel
    if name == "lavaMD_metrics":
        assert potential["bound"].tolist() == ["fp64"]
