"""Power of each unit for the kernels of a run: stored, printed by its command, and refused where it is unknown."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from profsvc import store
from profsvc.analysis.power.components import error_quantile, fit_component_power, unit_powers
from profsvc.cli.application import app
from profsvc.errors import NotFoundError
from profsvc.views.power import components


@pytest.fixture(scope="module")
def measured(held_out_store):
    engine = store.open_store(str(held_out_store), pooled=True)
    yield engine
    engine.dispose()


def call(engine, *words):
    return CliRunner().invoke(app, ["--store", engine.url.database, "power", *words])


def test_units_add_up_to_what_is_predicted_without_the_kernel(measured):
    rows = store.table(measured, "v1_power_models", model=components.MODEL)
    assert set(rows["run"]) == {"measured"}
    told = {row["kernel"]: row for row in components.components(measured)["kernels"]}
    wide = rows.pivot_table(index="window", columns="quantity", values="value")
    units = [name for name in wide if name.startswith("unit_power_w_")]
    assert len(wide) == 55
    np.testing.assert_allclose(wide[units].sum(axis=1) + wide["idle_power_w"], wide["predicted_power_w"])
    for kernel, row in wide.iterrows():
        assert row["predicted_power_w"] == pytest.approx(told[kernel]["predicted_w"])
        assert row["measured_power_w"] == pytest.approx(told[kernel]["mean_power_w"])
    assert rows["form"].str.contains("error on kernels left out 10.3 %, worst 60 % \\(imbalance_static\\)").any()
    known = rows[rows["quantity"] == "predicted_power_w"].set_index("window")
    inside = wide["measured_power_w"].between(known["low"], known["high"])
    assert 0.9 < inside.mean() < 1  # the interval is of 95 % of the errors


def test_a_run_with_only_counters_is_predicted(measured):
    found = components.unit_powers(measured, "profile")
    assert len(found["rows"]) == 61
    assert all(row["measured_power_w"] is None for row in found["rows"])
    known = {row["kernel"]: row["predicted_power_w"] for row in found["rows"]}
    again = {row["kernel"]: row["predicted_power_w"] for row in components.unit_powers(measured, "measured")["rows"]}
    assert {name: known[name] for name in again} == pytest.approx(again)


def test_the_command_prints_a_row_per_kernel(measured, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    plain = call(measured, "measured", "--ipp")
    assert plain.exit_code == 0
    assert "measured  predicted  95 % of errors" in plain.output
    assert "error on kernels left out 10.3 %" in plain.output
    table = pd.read_csv(pd.io.common.StringIO(call(measured, "measured", "--ipp", "-o", "csv").output))
    assert table.shape[0] == 55
    assert json.loads(call(measured, "profile", "--ipp", "-o", "json").output)["rows"][0]["kernel"]
    assert "power of each unit for 55 kernels: profsvc --store" in call(measured, "measured").output
    for words in (["--ipp", "--sms"], ["--kernel", "x"], ["--ipp", "--host-power", "1"], ["--ipp", "--sensor", "x"]):
        assert call(measured, "measured", *words).exit_code == 2


def test_what_is_missing_is_said(demo, measured):
    with pytest.raises(NotFoundError, match="has no power of a load; upload a power log, and marks"):
        components.unit_powers(demo, "h200")
    assert call(measured, "measured", "--sms").exit_code == 3


def kernels(count: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rates = rng.uniform(0, 1, (count, 2))
    return pd.DataFrame(
        {
            "kernel": [f"k{n}" for n in range(count)],
            "window": [f"k{n}" for n in range(count)],
            "mean_power_w": 140 + rates @ [200.0, 300.0] + rng.normal(0, 5, count),
            "idle_power_w": 80.0,
            "active_sms": pd.array([None] * count, dtype="Int64"),
            "pipe_fma_elapsed_fraction": rates[:, 0],
            "dram_throughput_fraction": rates[:, 1],
        }
    )


def test_a_new_kernel_lacks_a_counter_or_is_predicted_by_all():
    table = kernels(31)
    found = fit_component_power(table.iloc[:30], 132)
    new = table.iloc[30:].assign(mean_power_w=None)
    rows = {row["quantity"]: row for row in unit_powers(new, found, 132)}
    truth = table["mean_power_w"].iloc[30]
    assert "measured_power_w" not in rows
    assert rows["predicted_power_w"]["low"] < truth < rows["predicted_power_w"]["high"]
    assert "left out" not in rows["predicted_power_w"]["form"].split(";")[-1].replace("error on kernels left out", "")
    blind = unit_powers(new.drop(columns="dram_throughput_fraction"), found, 132)
    assert [row["value"] for row in blind] == [None]
    assert blind[0]["reason"] == "no counter for memory of the board"
    half = pd.concat([new, new.assign(window="other", dram_throughput_fraction=None)]).astype(object)
    told = {row["window"]: row["reason"] for row in unit_powers(half, found, 132)}
    assert told == {"k30": None, "other": "no counter for memory of the board"}


def test_a_fit_that_claims_nothing_gives_no_power():
    noise = kernels(20).assign(mean_power_w=np.random.default_rng(5).normal(300, 30, 20))
    rows = unit_powers(noise, fit_component_power(noise, 132), 132)
    assert {row["value"] for row in rows if row["quantity"] == "predicted_power_w"} == {None}
    assert all("do not use" in row["reason"] for row in rows if row["value"] is None)


def test_repeats_of_a_kernel_are_left_out_together():
    """Else a kernel that is measured every night would predict itself."""
    once = kernels(12)
    thrice = pd.concat([once] * 3, ignore_index=True)
    one, three = (fit_component_power(table, 132) for table in (once, thrice))
    assert three.left_out_rms_w == pytest.approx(one.left_out_rms_w)


def test_errors_of_few_kernels_have_no_interval():
    assert error_quantile(np.ones(18)) == np.inf
    assert error_quantile(np.append(np.ones(19), np.nan)) == 1


def test_a_long_name_is_cut_in_the_record():
    table = kernels(20).assign(kernel=[f"{'x' * 5000}{n}" for n in range(20)])
    assert all(len(row["form"]) < 200 for row in unit_powers(table, fit_component_power(table, 132), 132))
