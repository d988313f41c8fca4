"""Power, heat maps and components over HTTP, and the command line that asks for them there."""

import base64
import json
import shutil

import pytest

from profsvc import pipeline, store
from profsvc.analysis.power.options import Options
from profsvc.reports.rows import plain
from profsvc.views.power import run_power as power
from profsvc.web.http.state import AppState
from tests.cli import conftest as commands
from tests.conftest import ROOT
from tests.views import power_logs, thermocouple_logs
from tests.web.conftest import running

cli, store_file = commands.cli, commands.store_file
SAME = [
    ["power", "sweep"],
    ["power", "sweep", "-o", "json"],
    ["power", "sweep", "--reference-temperature", "40", "--sensor", "power.draw.instant", "-o", "csv"],
    ["power", "sweep", "--host-power", "30", "--temperature-sensor", "temperature.gpu", "--offset", "0.5"],
    ["power", "p/power", "-o", "json"],
    ["thermal", "sweep"],
    ["thermal", "sweep", "--load", "300,80", "--for", "30,9.5", "--start", "30", "--limit", "40", "-o", "json"],
    ["power", "spacer", "--rotated", "turned", "--angle", "0"],
    ["power", "spacer", "--rotated", "turned", "--calibration", "plates", "--rc-s", "35", "-o", "json"],
    ["show", "p/power", "-o", "json"],
    ["components"],
    ["components", "--device", "h200", "--kernels", "-o", "csv"],
    ["power", "spacer"],
    ["power", "swep"],
    ["power", "sweep", "--sensor", "no"],
    ["thermal", "spacer"],
    ["thermal", "sweep", "--load", "300"],
    ["power", "spacer", "--rotated", "turne"],
    ["components", "--device", "a100"],
]
WRITTEN = [
    ["power", "sweep", "--plot", "a.png", "-o", "csv"],
    ["power", "sweep", "--plot", "a.html"],
    ["thermal", "sweep", "--load", "300", "--for", "30", "--plot", "heat.png"],
    ["power", "spacer", "--heat-map", "a.json", "-o", "json"],
    ["power", "spacer", "--heat-map", "a.png", "--minus", "idle", "--calibration", "plates"],
    ["power", "drifting", "--heat-map", "a.png"],
]


@pytest.fixture(scope="module")
def logged(tmp_path_factory, held_out_store):
    """A service on a store with logs of power and of thermocouples, and kernels whose power is known."""
    file = shutil.copy(held_out_store, tmp_path_factory.mktemp("logged") / "store.sqlite")
    engine = store.open_store(str(file), pooled=True)
    power_logs.fill(engine)
    thermocouple_logs.fill_all(engine)
    with (ROOT / "fixtures" / "ncu_raw" / "plain.csv").open("rb") as stream:
        pipeline.ingest(engine, stream, "plain.csv", store.RunInfo(project="p", name="power"))
    with running(AppState(engine, store.blob_store_of(engine))) as service:
        yield service
    engine.dispose()


@pytest.mark.parametrize("command", SAME, ids=" ".join)
def test_a_service_says_of_power_what_its_store_says(cli, logged, monkeypatch, command):
    place = logged.site.engine.url.database
    local = cli("--store", place, *command)
    monkeypatch.setenv("PROFSVC_URL", logged.url)
    remote = cli(*command)
    # Commands to copy repeat the store that was given; a service is named by its variable.
    said, printed = (text.replace(f" --store {place}", "") for text in (local.err, local.out))
    assert (remote.code, remote.err, remote.out) == (local.code, said, printed)
    assert local.code in {0, 2, 3}
    assert (local.out == "") == (local.code > 0)


@pytest.mark.parametrize("command", WRITTEN, ids=" ".join)
def test_a_service_draws_what_its_store_draws(cli, logged, monkeypatch, tmp_path, command):
    found = []
    for where in ("local", "remote"):
        (tmp_path / where).mkdir()
        monkeypatch.chdir(tmp_path / where)
        result = cli(*(["--store", logged.site.engine.url.database] * (where == "local")), *command)
        files = {path.name: path.read_bytes() for path in (tmp_path / where).iterdir()}
        found.append((result.code, result.out, result.err, files))
        monkeypatch.setenv("PROFSVC_URL", logged.url)
    assert found[0] == found[1]
    assert len(found[0][3]) == (found[0][0] == 0) * (3 if command[1] == "sweep" and "a.png" in command else 1)


def test_the_answers_are_those_of_the_views(logged):
    found = logged.ok("/v1/runs/sweep/power", reference_temperature=40, draw="svg")
    names = [(one["name"], base64.b64decode(one["data"])[:5]) for one in found.pop("pictures")]
    assert names == [("time", b"<?xml"), ("sms", b"<?xml"), ("per-watt", b"<?xml")]
    want = power.power(logged.site.engine, "sweep", Options(reference_temperature_c=40.0))
    assert found == json.loads(json.dumps(plain(want)))
    assert "pictures" not in logged.ok("/v1/runs/sweep/power")
    # A slash that is written as part of the name: the run "power" of the project "p", not the power of a run "p".
    assert logged.ok("/v1/runs/p%2Fpower")["run"]["name"] == "power"
    assert "no run named 'p'" in logged.refused("/v1/runs/p/power", 404)


WRONG = (
    ("/v1/runs/sweep/power", {"reference_temperature": "313"}, "must be -60 to 150 degrees C"),
    ("/v1/runs/sweep/power", {"reference_temperature": "nan"}, "must be -60 to 150 degrees C"),
    ("/v1/runs/sweep/power", {"host_power": "-1"}, "must be a finite number of W, not negative"),
    ("/v1/runs/sweep/power", {"offset": "1e999"}, "must be a finite number of s"),
    ("/v1/runs/sweep/power", {"draw": "gif"}, "choose svg or png or html"),
    ("/v1/runs/sweep/power", {"watts": "1"}, "no parameter named 'watts'"),
    ("/v1/runs/spacer/heat-map", {"rc_s": "0"}, "must be a finite number of s above 0"),
    ("/v1/runs/spacer/rotated", {}, "second is missing"),
    ("/v1/runs/spacer/rotated", {"second": "turned", "angle": "inf"}, "must be a finite number of degrees"),
    ("/v1/components", {"run": "1"}, "no parameter named 'run'"),
)


@pytest.mark.parametrize(("path", "params", "words"), WRONG)
def test_wrong_questions_are_refused(logged, path, params, words):
    assert words in logged.refused(path, 400, **params)
