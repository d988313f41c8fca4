"""What was measured of a device, from the file that ``profsvc characterize`` wrote on an H200."""

import io
from pathlib import Path

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.errors import NotFoundError
from profsvc.views import device as about

FILE = Path(__file__).parents[2] / "fixtures" / "microbench" / "characterization_h200.csv.gz"


def test_curves_costs_and_figures_come_with_spread_and_range(engine: Engine) -> None:
    with FILE.open("rb") as stream:
        verdict = pipeline.ingest(engine, stream, FILE.name, store.RunInfo(name="measured"))
    assert (verdict.lines_rejected, verdict.characterized) == (0, {"NVIDIA H200"})
    view = about.device(engine, "H200")
    dram = next(one for one in view["curves"] if one["quantity"] == "F_DRAMThr")
    assert (dram["low"], dram["high"]) == (512, 131072)
    assert dram["saturated"] == pytest.approx(0.942, abs=0.001)
    levels = [y for _, y in dram["curve"]]
    assert levels == sorted(levels)
    falling = next(one for one in view["curves"] if one["quantity"] == "F_Divergence")
    assert [y for _, y in falling["curve"]] == sorted((y for _, y in falling["curve"]), reverse=True)
    cost = {one["quantity"]: one for one in view["costs"]}["k_double"]
    assert cost["cycles"] == pytest.approx(0.5012, rel=1e-4)
    assert cost["spread"] < 1e-4
    barriers = [(one["x"], one["repeats"]) for one in view["measured"] if one["quantity"] == "cost_barrier"]
    assert barriers == [(warps, 7) for warps in (1, 2, 4, 8, 16, 32)]
    rows = about.summary(about.all_measured(engine), "NVIDIA H200")
    assert len(rows) == len(view["curves"]) + len(view["costs"]) + len(view["measured"])
    with pytest.raises(NotFoundError, match="no characterization of 'A100-SXM-80GB'; 'NVIDIA H200' is characterized"):
        about.summary(about.all_measured(engine), "A100-SXM-80GB")


def test_only_the_newest_file_counts_however_many_came_before(engine: Engine) -> None:
    def put(run: str, text: str) -> None:
        lines = "device,quantity,x,y\n" + text
        pipeline.ingest(engine, io.BytesIO(lines.encode()), f"{run}.csv", store.RunInfo(name=run))

    put("old", "NVIDIA H200,F_DRAMThr,1,0.25\n" * 10_001 + "NVIDIA H200,k_l2_load,,3\n")
    put("new", "NVIDIA H200,F_DRAMThr,1,0.5\n")
    put("other", "NVIDIA L4,F_DRAMThr,1,0.75\n")
    values = {
        row["quantity"]: (row["value"], row["repeats"]) for row in about.summary(about.all_measured(engine), "H200")
    }
    assert values == {"F_DRAMThr": (0.5, 1), "k_l2_load": (3, 1)}
    assert about.summary(about.all_measured(engine), "NVIDIA L4")[0]["value"] == 0.75
    assert about.all_measured(engine, "no such project") == []
