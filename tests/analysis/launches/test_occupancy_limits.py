"""The blocks that fit on an SM are those that Nsight Compute says, in every export; a difference is flagged."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from profsvc import pipeline, store
from profsvc.formulas.performance.occupancy import RESOURCES
from tests.analysis.models.test_models import WHOLE, rows

FIXTURES = Path(__file__).parents[3] / "fixtures"
SHARED = Path(__file__).parents[4] / "shared"
EXPORTS = (
    *("demo/ncu_raw.csv.gz", "library/ncu_raw_base.csv.gz", "ncu_raw/h200_live_stdout.csv"),
    *("held_out/ncu_raw_base.csv.gz", "held_out/ncu_details.csv.gz"),
    *("ncu_details/h200_three_launches.csv.gz", "ncu_details/h200_three_launches_min.csv.gz"),
)
FOUND = (
    *("captures/h200/ncu_details.csv.gz", "captures/h200/ncu_details_min.csv.gz"),
    "corpus/2_ncu/brycelelbach__nsightful__copy_blocked.csv",
    *sorted(str(p.relative_to(SHARED)) for p in SHARED.glob("corpus/2_ncu/meinie*bf16*")),
)
LIMITS = {name: f"occupancy_limit_by_{name}_blocks" for name in ("blocks", "warps", "registers")}
LIMITS["shared"] = "occupancy_limit_by_shared_mem_blocks"


@pytest.mark.parametrize("path", [*(FIXTURES / name for name in EXPORTS), *(SHARED / name for name in FOUND)], ids=str)
def test_computed_limits_are_those_of_the_export(engine, path: Path) -> None:
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    with path.open("rb") as stream:
        pipeline.ingest(engine, stream, path.name, store.RunInfo(name="one"))
    found = pd.DataFrame(store.select(engine, "v1_models", model="occupancy"))
    exported = pd.DataFrame(store.select(engine, "v1_counter_values", counter=LIMITS["registers"]))
    assert len(exported)
    assert set(exported["launch_id"]) <= set(found.loc[found["quantity"] == "blocks", "launch_id"])
    assert not found["flags"].fillna("").str.contains("INPUT_SUSPECT").any()
    assert not found["quantity"].str.startswith("limit_").any()


def test_a_limit_that_the_export_contradicts_is_flagged_with_both_numbers() -> None:
    limits = {"blocks": 32.0, "warps": 8.0, "registers": 16.0, "shared": 32.0}  # of 256 threads with 16 registers
    exported = {LIMITS[name]: value for name, value in limits.items()}
    counters = WHOLE.assign(**exported, block_threads=256.0, shared_mem_config_bytes=32768.0)
    counters.loc[counters.index[1], LIMITS["registers"]] = 12.0
    found = rows(counters).query("model == 'occupancy'")
    same, other = (found[found["launch_id"] == launch].set_index("quantity") for launch in counters.index)
    assert set(same.index) == {"occupancy", "blocks", "limiter"}
    assert not same["flags"].any()
    assert other.loc["limit_registers", "value"] == 16
    assert other.loc["limit_registers_exported", "value"] == 12
    assert (other["flags"] != 0).all()
    assert set(other.index) - set(same.index) == {"limit_registers", "limit_registers_exported"}


@pytest.mark.parametrize(("printed", "exported", "flagged"), [(2050.0, 21.0, False), (2050.0, 19.0, True),
                                                              (2048.0, 20.0, True)])  # fmt: skip
def test_shared_memory_that_a_page_rounds_is_no_contradiction(printed: float, exported: float, flagged: bool) -> None:
    config = 65540.0 if printed == 2050 else 65536.0
    own = {LIMITS["shared"]: exported, "shared_mem_static_bytes": printed, "shared_mem_config_bytes": config}
    found = rows(WHOLE.assign(**own)).query("model == 'occupancy'").set_index("quantity")
    assert found["flags"].ne(0).any() == flagged
    assert ("limit_shared" in found.index) == flagged


def test_without_limits_in_the_export_nothing_is_compared() -> None:
    found = rows().query("model == 'occupancy'")
    assert not found["quantity"].str.startswith("limit_").any()
    assert set(LIMITS) == set(RESOURCES)
    assert np.isfinite(found["value"]).all()
