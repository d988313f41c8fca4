"""What the page of power says of its sensors, of the units of the device and of numbers of SMs."""

import json
import shutil

import pytest
from click.testing import CliRunner

from profsvc import pipeline, store
from profsvc.cli.application import app
from profsvc.web.http.state import AppState
from profsvc.web.pages.runs.power import _corrections, _quality_warnings, _sensor_groups
from tests.views import power_logs
from tests.web.conftest import running

WINDOW = {
    "sensor_id": 7, "sensor": "p", "gpu_index": 0, "device": None, "window": "mix", "mean_power_w": 300.0,
    "energy_j": 2100.0, "quality": "late", "corrected_power_w": None, "corrected_power_low_w": None,
    "corrected_power_high_w": None, "corrected_energy_j": None, "corrected_energy_low_j": None,
    "corrected_energy_high_j": None, "coefficient_w_per_c": None, "reason": "the range is 2 \u00b0C",
}  # fmt: skip
LATE = {"sensor_id": 7, "sensor": "p", "window": "mix", "flag": "late", "message": "0.5 s late"}


def test_what_a_flag_is_said_of_often_is_said_once_and_the_rest_on_demand() -> None:
    others = [LATE | {"message": f"0.{n} s late"} for n in (6, 7)]
    said = _quality_warnings(
        [LATE, LATE | {"window": "idle"}, *others, LATE | {"flag": "gap", "window": None}], {7: [7]}
    )
    assert [(one["flag"], one["message"], len(rest)) for one, rest in said] == [
        ("late", "0.5 s late", 2),
        ("gap", "0.5 s late", 0),
    ]
    assert said[0][0]["windows"] == ["p, mix", "p, idle"]


def test_a_reading_of_two_names_has_one_table_and_one_word_of_warning() -> None:
    twin = {"sensor_id": 8, "sensor": "p.average"}
    view = {"windows": [WINDOW, WINDOW | twin], "coefficients": [], "quality": [LATE, LATE | twin]}
    assert [(group["title"], len(group["windows"])) for group in _sensor_groups(view)] == [("p, p.average of GPU 0", 1)]
    assert _sensor_groups(view)[0]["windows"][0]["warnings"] == "late"
    for same, named in (({7: [7, 8]}, ["p, mix"]), ({7: [7], 8: [8]}, ["p, mix", "p.average, mix"])):
        assert [one["windows"] for one, _ in _quality_warnings(view["quality"], same)] == [named]


def test_two_corrections_of_one_sensor_say_which_windows_they_are_of() -> None:
    corrected = WINDOW | {"corrected_power_w": 299.0, "reference_temperature_c": 41.0, "coefficient_w_per_c": 0.4,
                          "coefficient_low": 0.3, "coefficient_high": 0.5}  # fmt: skip
    other = corrected | {"window": "idle", "coefficient_w_per_c": 1.2, "coefficient_high": 2.0}
    assert _corrections([corrected, WINDOW, other, corrected | {"window": "mix (2)"}]) == [
        ("Corrected to 41 \u00b0C with 0.4000 [0.3000, 0.5000] W/\u00b0C", ["mix", "mix (2)"]),
        ("Corrected to 41 \u00b0C with 1.200 [0.3000, 2.000] W/\u00b0C", ["idle"]),
    ]


@pytest.fixture(scope="module")
def powered(held_out_store, tmp_path_factory):
    """A service on kernels with power and counters, of which the profile is analysed once more, and a sweep of SMs."""
    file = tmp_path_factory.mktemp("powered") / "store.sqlite"
    shutil.copy(held_out_store, file)
    engine = store.open_store(str(file), pooled=True)
    pipeline.analyze(engine, store.find_run(engine, "profile"))
    power_logs.fill(engine)
    with running(AppState(engine, store.blob_store_of(engine))) as service:
        yield service
    engine.dispose()


def printed(*words: str) -> str:
    return CliRunner().invoke(app, ["power", *words, "-o", "json"]).stdout


def test_units_stand_on_the_pages_of_the_run_and_of_the_launch(powered, monkeypatch) -> None:
    page = powered.get("/runs/measured/power").text
    assert "<h2>Power of each unit</h2>" in page
    assert "error on kernels left out 10.3 %, worst 60 % (imbalance_static)" in page
    assert "/explain/v1_power_models.of_components" in page
    launch = store.select(powered.site.engine, "v1_launches", kernel_short="saxpy_f4")[0]
    of_launch = powered.get(f"/runs/{launch['run_id']}/launches/{launch['launch_id']}").text
    assert "<h2>Power of each unit</h2>" in of_launch
    assert "imbalance_static" in of_launch
    answer = powered.ok("/v1/runs/measured/unit-power")
    monkeypatch.setenv("PROFSVC_URL", powered.url)
    assert json.loads(printed("measured", "--ipp"))["rows"] == answer["rows"]


def test_numbers_of_sms_stand_on_the_page_and_are_refused_without_a_sweep(powered, monkeypatch) -> None:
    page = powered.get("/runs/sweep/power").text
    assert "<h2>Number of SMs</h2>" in page
    assert "most work per joule on 132 SMs" in page
    answer = powered.ok("/v1/runs/sweep/sm-counts")
    monkeypatch.setenv("PROFSVC_URL", powered.url)
    assert json.loads(printed("sweep", "--sms"))["rows"] == answer["rows"]
    assert "mark the same load with 4 or more numbers" in powered.refused("/v1/runs/measured/sm-counts", 404)
    assert "<h2>Number of SMs</h2>" not in powered.get("/runs/measured/power").text
    assert powered.refused("/v1/runs/measured/unit-power", 400, sensor="x")
