"""``whatif``, ``antipatterns``, ``versions`` and ``plot``."""

import csv
import io
import json

import pytest

from profsvc.views.models.what_if import COLUMNS
from tests.web import conftest

looked_at = conftest.looked_at
FORMS = ["table", "csv", "json", "ndjson", "md"]
ASKED = {
    "whatif": ["whatif", "h200", "--kernel", "saxpy", "--sms", "33,x0.5", "--frequency", "1.2GHz"],
    "resources": ["whatif", "h200", "--kernel", "saxpy", "--registers", "+1", "--shared", "4KiB"],
    "patterns": ["antipatterns", "h200"],
    "pattern": ["antipatterns", "h200", "--kernel", "reduce_v2"],
    "versions": ["versions", "h200", "--kernel", "reduce"],
    "runs": ["versions", "h200", "h200", "--kernel", "saxpy"],
    "device": ["whatif", "h200", "--kernel", "saxpy", "--device", "V100-SXM2"],
    "graph": ["graph", "h200", "--show", "warps", "--limit", "3"],
    "roofline": ["plot", "h200", "roofline"],
    "sms": ["plot", "h200", "sms", "--kernel", "gemm_naive"],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", ASKED.values(), ids=ASKED)
def test_they_answer_in_every_form(on_demo, command, form):
    result = on_demo(*command, "-o", form)
    assert result.code == 0, result.err
    if form == "json":
        assert json.loads(result.out)["rows"]
    elif form == "csv" and command[0] == "whatif":
        rows = list(csv.DictReader(io.StringIO(result.out)))
        assert list(rows[0]) == list(COLUMNS)
        assert len(rows) == (3 if "--sms" in command else 2)
    else:
        assert len(result.out.splitlines()) >= 2


@pytest.mark.parametrize("command", ASKED.values(), ids=ASKED)
def test_a_service_says_what_its_store_says(cli, on_demo, looked_at, monkeypatch, command):
    local = on_demo(*command)
    monkeypatch.setenv("PROFSVC_URL", looked_at.url)
    remote = cli(*command)
    assert (remote.code, remote.out, remote.err) == (0, local.out, local.err)


def test_pictures_come_as_files_and_over_http_alike(on_demo, looked_at, tmp_path):
    for name in ("a.svg", "a.png", "dark.svg"):
        dark = ["--dark"] if name.startswith("dark") else []
        result = on_demo("plot", "h200", "benefit", "--out", tmp_path / name, *dark)
        assert result.code == 0
        assert f"written: {tmp_path / name}" in result.err
        assert result.out == ""
        form = name.split(".")[1]
        answer = looked_at.get(f"/v1/runs/h200/plots/benefit.{form}", dark=len(dark))
        assert answer.content == (tmp_path / name).read_bytes()
        assert answer.headers["content-type"] == {"svg": "image/svg+xml", "png": "image/png"}[form]
    data = looked_at.ok("/v1/runs/demo%2Fh200/plots/benefit.json", limit=2)
    assert (data["kind"], len(data["rows"])) == ("benefit", 2)
    assert data["truncated"] is True


def test_wrong_questions_are_refused(on_demo, looked_at, tmp_path):
    for code, said, *words in (
        (3, "no plot named 'roofs'; did you mean 'roofline'?", "plot", "h200", "roofs"),
        (2, "end it with .svg or .png", "plot", "h200", "roofline", "--out", tmp_path / "a.pdf"),
        (3, "has no memory trace", "plot", "h200", "hits"),
        (2, "frequency '1200' must be a frequency with its unit or a factor", "whatif", "h200", "--frequency", "1200"),
        (3, "no device named 'H2000'", "whatif", "h200", "--device", "H2000"),
        (3, "no run named 'h20'", "whatif", "h20"),
    ):
        result = on_demo(*words)
        assert (result.code, said in result.err) == (code, True), result.err
    assert "sms '0' must be a whole number of SMs or a factor, such as 66" in looked_at.refused(
        "/v1/runs/h200/whatif", 400, sms="0"
    )
    assert "no plot named" in looked_at.refused("/v1/runs/h200/plots/roofs", 404)
    assert "parameter" in looked_at.refused("/v1/runs/h200/whatif", 400, smss="1")
