"""Runs with more launches than are shown: the longest, all kernels, and no word of it left out."""

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine

from profsvc import pipeline, store, views
from profsvc.cli.application import app
from profsvc.cli.results import show as show_module
from profsvc.errors import NotFoundError
from profsvc.reports import run_page
from profsvc.reports.text import explanation
from profsvc.reports.text.launches import details as launch_text
from profsvc.reports.text.runs import run as run_text
from profsvc.views.explain.numbers import explain
from tests.inputs.long_exports import gpu_trace

ROWS, LAUNCHES = 150, 120


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = store.open_store(str(tmp_path_factory.mktemp("big") / "store.sqlite"), pooled=True)
    content = "".join(gpu_trace(ROWS)).encode()
    pipeline.ingest(engine, io.BytesIO(content), "trace.csv", store.RunInfo(name="r"))
    yield engine
    engine.dispose()


def show(engine: Engine, *arguments: str) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["--store", str(engine.url.database), "show", "r", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_the_longest_launches_have_a_row(engine: Engine) -> None:
    view = views.run(engine, "r", 7)
    longest = sorted(store.select(engine, "v1_launches"), key=lambda row: -row["duration_ns"])[:7]
    assert [row["launch_id"] for row in view["launches"]] == [row["launch_id"] for row in longest]
    assert (view["truncated"], view["total_launches"]) == (True, LAUNCHES)
    assert json.loads(json.dumps(view, allow_nan=False)) == view


def test_kernels_of_one_short_name_are_told_apart(engine: Engine) -> None:
    view = views.run(engine, "r", 7)
    for place, row in enumerate(view["kernels"][:2]):
        row |= {"kernel": f"void gemm<{16 << place}>(int *)", "kernel_short": "gemm"}
    for shown in (run_text.run(view), run_page.run(view, []).replace("&lt;", "<").replace("&gt;", ">")):
        assert "gemm<16>" in shown
        assert "gemm<32>" in shown


@pytest.mark.parametrize("limit", [LAUNCHES, LAUNCHES + 1, None])
def test_all_launches_follow_each_other_where_they_are_few_enough(engine: Engine, limit: int | None) -> None:
    view = views.run(engine, "r", limit)
    assert [row["launch"] for row in view["launches"]] == list(range(LAUNCHES))
    assert (view["truncated"], view["kernels"]) == (False, [])
    assert "TRUNCATED" not in run_text.run(view)


def test_kernels_sum_up_all_launches(engine: Engine) -> None:
    view = views.run(engine, "r", 100)
    times = defaultdict(list)
    for row in store.select(engine, "v1_launches"):
        times[row["kernel"]].append(row["duration_ns"])
    assert not view["kernels_truncated"]
    assert {row["kernel"]: row["launches"] for row in view["kernels"]} == {k: len(t) for k, t in times.items()}
    for row in view["kernels"]:
        found = times[row["kernel"]]
        assert row["total_ms"] == pytest.approx(sum(found) / 1e6)
        assert row["mean_us"] == pytest.approx(sum(found) / len(found) / 1e3)
        assert (row["max_us"], row["p95_us"] <= row["max_us"]) == (max(found) / 1e3, True)
    totals = [row["total_ms"] for row in view["kernels"]]
    assert totals == sorted(totals, reverse=True)
    assert sum(row["share_pct"] for row in view["kernels"]) == pytest.approx(100, abs=0.1 * len(totals))
    some = views.run(engine, "r", 3)
    assert some["kernels_truncated"]
    assert some["kernels"] == view["kernels"][:3]


def test_a_kernel_of_several_files_has_no_percentile(engine: Engine, tmp_path) -> None:
    both = store.open_store(str(tmp_path / "both.sqlite"), pooled=True)
    lines = list(gpu_trace(203))
    for rows in (lines[3:103], lines[103:]):  # 80 and 82 launches, of which none comes twice
        content = "".join(lines[:3] + rows).encode()
        pipeline.ingest(both, io.BytesIO(content), "trace.csv", store.RunInfo(name="r"))
    kernels, _ = store.kernels_by_time(both, 1, 99)
    assert sum(row["launches"] for row in kernels) == 162
    assert any(row["p95_us"] is None and row["max_us"] > 0 for row in kernels)
    both.dispose()


def test_what_is_not_shown_is_said_loudly(engine: Engine) -> None:
    out, _ = show(engine, "--limit", "7")
    assert "TRUNCATED: showing the 7 longest of 120 launches; 113 are not shown." in out
    assert " show id:1 --all" in out
    assert re.search(r"more kernels:\s+profsvc .*sql ", out)
    assert out.index("total ms") < out.index("what to do first")
    html = run_page.run(views.run(engine, "r", 7), [])
    assert "120 launches" in html
    assert "TRUNCATED: showing the 7 longest of 120 launches; 113 are not shown." in html
    for output in ("csv", "ndjson"):
        assert "truncated: only the first 40 rows are shown" in show(engine, "-o", output)[1]
    everything, _ = show(engine, "--all")
    assert "TRUNCATED" not in everything


def test_the_first_screen_has_the_kernels_by_their_time(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    spent: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in store.select(engine, "v1_launches"):
        spent[row["kernel"], row["kernel_short"]].append(row["duration_ns"])
    whole = sum(map(sum, spent.values()))
    most = sorted(spent.items(), key=lambda pair: -sum(pair[1]))[:5]
    monkeypatch.setenv("COLUMNS", "100")
    for limit in (show_module.OVERVIEW_LAUNCHES, 7):
        monkeypatch.setattr(show_module, "OVERVIEW_LAUNCHES", limit)
        out, _ = show(engine)
        head, *listed = out.partition("\n   Most time is spent in")[2].partition("\n\n")[0].splitlines()
        assert head.split() == ["launches", "take", "mean", "share"]
        for number, (line, ((_, kernel), own)) in enumerate(zip(listed, most, strict=True), 1):
            assert line.startswith(f"{number:>2} {kernel[:10]}")
            launches, *_, share, percent = line.split()[-7:]
            assert (launches, percent) == (str(len(own)), "%")
            assert float(share) == pytest.approx(100 * sum(own) / whole, rel=5e-3)


def test_machines_are_told_too(engine: Engine) -> None:
    view = json.loads(show(engine, "-o", "json")[0])
    assert (view["truncated"], len(view["launches"]), view["total_launches"]) == (True, 40, LAUNCHES)
    out, err = show(engine, "--limit", "7", "-o", "csv")
    assert out.count("\n") == 8
    assert "truncated: only the first 7 rows are shown" in err
    out, err = show(engine, "--all", "-o", "ndjson")
    assert (out.count("\n"), err) == (LAUNCHES, "")


def test_launches_of_a_kernel_are_bounded_too(engine: Engine) -> None:
    name = views.run(engine, "r", 1)["kernels"][0]["kernel"]
    every, more = views.launches_of(engine, "r", name)
    assert len(every) > 2
    assert not more
    some, more = views.launches_of(engine, "r", name, 2)
    assert [one["launch_id"] for one in some] == [
        one["launch_id"] for one in sorted(every, key=lambda one: -one["duration_ns"])[:2]
    ]
    assert more
    opened = views.launch(engine, "r", name, 2)
    assert (len(opened["launches"]), opened["truncated"]) == (2, True)
    assert "TRUNCATED: showing the longest launches" in launch_text.launches(opened)
    walked = explain(engine, "duration_ns", "r", None)
    assert walked["truncated"]
    assert len({step["launch"] for step in walked["trace"]}) == views.LIMIT
    assert "TRUNCATED: showing the longest launches" in explanation.explanation(walked)
    with pytest.raises(NotFoundError, match="it has launches #0 to #119"):
        views.launches_of(engine, "r", "120")
    with pytest.raises(NotFoundError, match="it has launches #0 to #119"):
        views.launches_of(engine, "r", "9" * 30)


def test_transfers_are_summed_up_by_kind(engine: Engine) -> None:
    rows = store.select(engine, "v1_transfers")
    (kind,) = views.run(engine, "r")["transfers"]
    assert (kind["kind"], kind["count"]) == ("HtoD", len(rows))
    assert kind["bytes"] == sum(row["bytes"] for row in rows)
    assert kind["duration_ms"] == pytest.approx(sum(row["duration_ns"] for row in rows) / 1e6)


def test_pages_of_one_report_come_together(tmp_path, fixtures_of_pages: list) -> None:
    engine = store.open_store(str(tmp_path / "pages.sqlite"), pooled=True)
    for path in fixtures_of_pages:
        with path.open("rb") as stream:
            pipeline.ingest(engine, stream, path.name, store.RunInfo(name="r"))
    view = views.run(engine, "r", 2)
    assert (len(view["launches"]), view["total_launches"], view["truncated"]) == (2, 3, True)
    assert all(row["potential"] is not None for row in view["launches"])
    found, _ = store.longest_launches(engine, 1, 2)
    assert len(found) == 2
    engine.dispose()


@pytest.fixture
def fixtures_of_pages() -> list:
    from tests.store.ingest.duplicates.test_report_pages import DETAILS, RAW

    return [DETAILS, RAW]


def test_an_explanation_walks_the_page_that_stands_for_a_launch(tmp_path, fixtures_of_pages: list) -> None:
    engine = store.open_store(str(tmp_path / "pages.sqlite"), pooled=True)
    for path in fixtures_of_pages:
        with path.open("rb") as stream:
            pipeline.ingest(engine, stream, path.name, store.RunInfo(name="pages"))
    shown = {row["launch"]: row["potential"] for row in views.run(engine, "pages")["launches"]}
    walked = [row for row in explain(engine, "potential", "pages", None)["trace"] if row["name"] == "potential"]
    of_run = store.select(engine, "v1_potential", launch_id=None)[0]["speedup"]
    assert {row["launch"]: row["value"] for row in walked} == shown | {None: of_run}
    assert len(walked) == len(shown) + 1
    engine.dispose()
