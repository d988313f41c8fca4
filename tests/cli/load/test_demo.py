"""``demo --serve`` on a part of its files; `python -m tests.benchmarks.first_look` measures it on all of them."""

import time
from types import SimpleNamespace

import pytest

from profsvc import pipeline, store
from profsvc.cli.load import demo
from tests.cli.conftest import Call
from tests.web.conftest import running


def test_every_file_of_the_demo_is_read() -> None:
    runs = pipeline.demo_runs()
    assert runs[0][0] == "h200"
    assert {run for run, _ in runs} == {"h200", "h200-live"}
    formats = []
    for _, path in runs:
        with path.open("rb") as stream:
            verdict = pipeline.check_file(stream, path.name)
        formats.append(verdict.format)
        assert verdict.lines_rejected == 0
    assert sorted(formats) == ["marks", "ncu-raw", "ncu-raw", "nvidia-smi", "nvml-energy"]


def test_the_demo_is_served_while_it_loads(cli: Call, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = [pair for pair in pipeline.demo_runs() if "ncu" in pair[1].name or "phases" in pair[1].name]
    monkeypatch.setattr(pipeline, "demo_runs", lambda: profiles)
    seen = {}

    def serve(engine, files, place, limits, say) -> None:
        from profsvc.web.http.state import AppState

        with running(AppState(engine, files)) as service:
            until = time.monotonic() + 30
            while not service.ok("/v1/reports")["rows"] and time.monotonic() < until:
                time.sleep(0.05)
            seen["runs"] = [row["name"] for row in service.ok("/v1/runs")["rows"]]
            seen["criteria"] = len(service.ok("/v1/criteria", limit="1000")["rows"])
            (seen["report"],) = service.ok("/v1/reports")["rows"]
            seen["phases"] = service.ok("/v1/uploads", format="marks")["rows"]
        seen["place"] = place

    part = SimpleNamespace(serve=serve, Endpoint=dict, Limits=SimpleNamespace(from_settings=lambda: None))
    monkeypatch.setattr(demo, "load_web_service", lambda: part)
    shown = cli("demo", "--serve", "--keep", tmp_path / "demo")
    assert shown.code == 0, shown.err
    assert seen["runs"] == ["h200", "h200-live"]
    assert seen["criteria"] > 300
    assert (seen["report"]["project"], seen["report"]["runs"]) == ("demo", 2)
    assert len(seen["phases"]) == 1
    assert seen["place"] == {"port": 0}
    assert "demo loaded" in shown.err
    assert store.schema_revision(store.connect(str(tmp_path / "demo" / "demo.sqlite"))) == store.latest_revision()


def test_exports_are_copied_again_but_replace_no_other_file(cli: Call, tmp_path) -> None:
    first = cli("demo", "--exports", tmp_path)
    assert (first.code, "phases.csv: " in first.err) == (0, True)
    assert cli("demo", "--exports", tmp_path).err == first.err
    (tmp_path / "phases.csv").write_text("mine", encoding="utf-8")
    refused = cli("demo", "--exports", tmp_path)
    assert (refused.code, "already has another file 'phases.csv'" in refused.err) == (2, True)
    assert (tmp_path / "phases.csv").read_text(encoding="utf-8") == "mine"


def test_a_store_that_the_demo_would_not_use_is_refused(cli: Call, tmp_path) -> None:
    result = cli("--store", tmp_path / "mine.sqlite", "demo", "--keep", tmp_path / "kept")
    assert (result.code, result.out) == (2, "")
    assert "choose the folder for it with --keep FOLDER" in result.err
    assert list(tmp_path.iterdir()) == []
