"""Loads on several numbers of SMs: best number, savings against all SMs, and refusals outside of what was measured."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from profsvc import pipeline, store
from profsvc.cli.application import app
from profsvc.errors import NotFoundError
from profsvc.views.power import sm_counts
from tests.inputs.uploads import ingest_all
from tests.views import power_logs

DEMO = Path(__file__).parents[3] / "fixtures" / "demo" / "ncu_raw.csv.gz"
LIMIT = 33


def marks(load: str = "mem", *, most: int = 132) -> str:
    """Marks of a load that 33 SMs saturate: a launch on all SMs has the same work per SM, but takes longer."""

    def launches(found: re.Match[str]) -> str:
        sms = int(found[2])
        return f"end,{load},{sms},launches={round(26400 * min(sms, LIMIT) / sms)}"

    text = re.sub(r"end,(mem),(\d+),launches=\d+", launches, power_logs.marks())
    lines = [line for line in text.replace("begin,mem", f"begin,{load}").splitlines() if f"{load}," not in line or
             int(line.split(",")[3]) <= most]  # fmt: skip
    return "\n".join(lines) + "\n"


def fill(engine, name: str, *files: tuple[str, bytes]) -> int:
    contents = [(data, file) for file, data in files]
    return ingest_all(engine, contents, store.RunInfo(name=name), pipeline.ReadOptions(zone="UTC")).run_id


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    engine = store.open_store(str(tmp_path_factory.mktemp("sweep") / "store.sqlite"), pooled=True)
    log = ("smi.csv", power_logs.log().encode())
    fill(engine, "whole", log, ("marks.csv", marks().encode()))
    fill(engine, "short", log, ("marks.csv", marks(most=66).encode()))
    fill(engine, "launch", log, ("marks.csv", marks("saxpy").encode()), (DEMO.name, DEMO.read_bytes()))
    yield engine
    engine.dispose()


def call(engine, *words):
    return CliRunner().invoke(app, ["--store", engine.url.database, "power", *words])


def test_fewer_sms_save_energy_where_the_memory_limits(swept):
    found = sm_counts.sm_counts(swept, "whole")
    best = found["best"][0]
    assert (best["best_sms"], best["reason"]) == (LIMIT, None)
    rows = {row["sms"]: row for row in found["rows"]}
    assert rows[LIMIT]["of_best"] == 1
    above, all_above = rows[LIMIT]["power_w"] - power_logs.IDLE_W, rows[132]["power_w"] - power_logs.IDLE_W
    # The same work takes the same time on 33 and on 132 SMs.
    assert rows[LIMIT]["energy_saved"] == pytest.approx(1 - rows[LIMIT]["power_w"] / rows[132]["power_w"], abs=0.001)
    assert rows[LIMIT]["runtime_energy_saved"] == pytest.approx(1 - above / all_above, abs=0.001)
    assert rows[LIMIT]["gated_energy_saved"] == pytest.approx(0.75, abs=0.001)
    assert rows[1]["energy_saved"] < 0
    assert rows[132]["energy_saved"] is None
    stored = store.select(swept, "v1_power_models", run="whole", quantity="energy_saved_on_33_sms")
    assert stored[0]["value"] == rows[LIMIT]["energy_saved"]


def test_savings_without_all_sms_are_refused(swept):
    best = sm_counts.sm_counts(swept, "short")["best"][0]
    assert best["reason"].endswith("savings are relative to all SMs of the device, but the sweep ends at 66 of 132; "
                                   "measure 132")  # fmt: skip
    assert all(row["energy_saved"] is None for row in sm_counts.sm_counts(swept, "short")["rows"])


def test_a_launch_has_its_time_by_models_and_its_power_by_the_sweep(swept):
    found = sm_counts.launch_sm_counts(swept, "launch", "saxpy")
    models = {row["load"]: row for row in found["best"]}
    assert set(models) == {"mwp_cwp", "throughput"}
    own = [row for row in found["rows"] if row["model"] == "throughput"]
    top = max(own, key=lambda row: row["relative_speed"] / row["power_w"])
    assert models["throughput"]["best_sms"] == top["sms"]
    assert top["of_best"] == 1
    assert own[-1]["energy_saved"] == pytest.approx(0)
    assert "law through the loads 'saxpy'" in " ".join(found["notes"])


def test_a_best_number_outside_of_what_was_measured_is_refused(swept):
    none = sm_counts.launch_sm_counts(swept, "launch", "gemm_naive")
    assert {row["best_sms"] for row in none["best"]} == {None}
    assert "no power of this kernel on several numbers of SMs" in none["best"][0]["reason"]
    found = {"measured_sms": (1.0, 66.0), "notes": []}
    assert sm_counts._launch_reason(found, 66.0) is None
    assert "would be 132 SMs, but the power was measured on 1 to 66 SMs" in sm_counts._launch_reason(found, 132.0)


def test_the_command_prints_levels_and_the_best(swept):
    plain = call(swept, "whole", "--sms")
    assert plain.exit_code == 0
    assert "most work per joule on 33 SMs" in plain.output
    assert "on SM counts left out" in plain.output
    assert "a projection, not a measurement" in plain.output
    assert len(call(swept, "whole", "--sms", "-o", "csv").output.splitlines()) == 1 + len(power_logs.SMS)
    assert json.loads(call(swept, "launch", "--sms", "--kernel", "saxpy", "-o", "json").output)["best"]
    assert call(swept, "whole", "--sms", "--sensor", "no").exit_code == 3
    with pytest.raises(NotFoundError, match="mark the same load with 4 or more numbers"):
        sm_counts.sm_counts_of_view({"models": [], "windows": [], "run": {"name": "x"}})
