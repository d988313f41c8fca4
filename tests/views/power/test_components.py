"""What each unit of a device draws: on kernels of an H200 whose power and counters were measured, and on too few."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from profsvc import specs, store
from profsvc.analysis.power.components import fit_component_power
from profsvc.cli.application import app
from profsvc.errors import DomainError, NotFoundError
from profsvc.specs.power.units import read_power_units
from profsvc.views.power.components import components


@pytest.fixture(scope="module")
def measured(held_out_store):
    """Held-out kernels with a profile of each, and a log of power with marks, as two runs of one device."""
    engine = store.open_store(str(held_out_store), pooled=True)
    yield engine
    engine.dispose()


def test_kernels_left_out_are_predicted_better_than_by_their_mean(measured):
    found = components(measured)
    assert (found["device"], found["runs"], found["left_out_windows"]) == ("NVIDIA H200", 55, 6)
    assert found["beats_constant"]
    assert found["left_out_share"] < 0.15
    assert found["constant_share"] > 0.4
    assert found["condition"] < 100
    drawn = {unit["unit"]: unit["max_power_w"] for unit in found["units"]}
    # Of 700 W at most: the memory of the board takes a good part, and nothing draws less than nothing.
    assert 150 < drawn["dram"] < 450
    assert all(watts >= 0 for watts in drawn.values())
    errors = [kernel["error_w"] for kernel in found["kernels"]]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(found["left_out_rms_w"])


def test_the_command_line_prints_units_and_kernels(measured):
    def call(*words):
        return CliRunner().invoke(app, ["--store", measured.url.database, "components", *words])

    plain = call()
    assert plain.exit_code == 0
    assert "(10.3 %), worst 60 % (imbalance_static); of the mean of the others:" in plain.output
    assert "condition number" in plain.output
    assert "rowsum_warp" in call("--kernels").output
    assert json.loads(call("-o", "json").output)["beats_constant"] is True
    assert call("-o", "csv").output.splitlines()[0] == "unit,max_power_w,low,high,meaning"
    assert call("--device", "a100").exit_code == 3


def test_a_store_without_power_says_what_is_missing(demo):
    with pytest.raises(NotFoundError, match="no run has the power of a load"):
        components(demo)


def kernels(count: int, seed: int = 3) -> pd.DataFrame:
    """Kernels whose power is what two units draw, and noise."""
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0, 1, (count, 2))
    power = 80 + 60 + rates @ [200.0, 300.0] + rng.normal(0, 5, count)
    return pd.DataFrame(
        {
            "kernel": [f"k{n}" for n in range(count)],
            "mean_power_w": power,
            "idle_power_w": 80.0,
            "active_sms": pd.array([None] * count, dtype="Int64"),
            "pipe_fma_elapsed_fraction": rates[:, 0],
            "dram_throughput_fraction": rates[:, 1],
        }
    )


def test_units_that_draw_are_found_and_others_are_not_invented():
    found = fit_component_power(kernels(30), 132)
    drawn = found.units.set_index("unit")["max_power_w"]
    assert drawn.to_dict() == pytest.approx({"always": 60.0, "fma": 200.0, "dram": 300.0}, rel=0.15)
    assert found.beats_constant
    assert found.left_out_rms_w < 10 < found.constant_rms_w


def test_few_kernels_or_noise_may_claim_nothing():
    few = fit_component_power(kernels(6), 132)
    assert few.verdict == "6 kernels: not enough to fit component power; 10 are needed"
    noise = kernels(20).assign(mean_power_w=np.random.default_rng(5).normal(300, 30, 20))
    assert fit_component_power(noise, 132).verdict.endswith("do not use these values")


def test_a_kernel_that_lacks_a_counter_is_left_out():
    table = kernels(20)
    table.loc[0, "dram_throughput_fraction"] = None
    assert len(fit_component_power(table, 132).kernels) == 19


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("dram,no_such_counter,board,x", "counter must be a share among the counters but is 'no_such_counter'"),
        ("dram,duration_ns,board,x", "counter must be a share"),
        ("dram,dram_throughput_fraction,chip,x", "scope must be one of"),
    ],
)
def test_a_wrong_row_of_units_is_named(row, words):
    with pytest.raises(DomainError, match=words):
        read_power_units(f"unit,counter,scope,meaning\n{row}\n")
    assert len({unit.name for unit in specs.power_units()}) == len(specs.power_units())
