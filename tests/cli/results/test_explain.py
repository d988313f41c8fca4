"""``explain`` and ``formats`` on the command line."""

import json

import pytest
from sqlalchemy import Engine

from profsvc import specs, store


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("divergence", ["formula", "source", "Bombieri", "warp_nonpred_execution_efficiency_fraction"]),
        ("potential", ["formula", "dram_read_bytes"]),
        ("dram_read_bytes", ["ncu", "dram__bytes_read.sum"]),
        ("dram__bytes_read.sum", ["vendor metric, used by", "dram_read_bytes"]),
    ],
)
def test_explain_says_what_a_number_means(on_demo, name, words):
    result = on_demo("explain", name)
    assert result.code == 0
    for word in words:
        assert word in result.out


@pytest.mark.parametrize("name", ["divergence", "potential", "duration_ns", "gpu__time_duration.sum"])
def test_explain_walks_to_file_and_line(on_demo, demo: Engine, name):
    (launch,) = store.select(demo, "v1_launches", launch_index=3)
    rows = json.loads(on_demo("explain", name, "--run", "h200", "--kernel", "3", "-o", "json").out)["trace"]
    cells = [row for row in rows if row.get("metric")]
    assert cells
    stored = store.select(demo, "v1_metrics", launch_id=launch["launch_id"])
    known = {(row["metric"], row["value"], row["line"]) for row in stored}
    for cell in cells:
        assert (cell["file"], cell["line"]) == ("ncu_raw.csv.gz", launch["line"])
        assert (cell["metric"].split(" (")[0], cell["value"], cell["line"]) in known


def test_the_walk_ends_in_the_value_that_is_stored(on_demo, demo: Engine):
    (launch,) = store.select(demo, "v1_launches", launch_index=3)
    (criterion,) = store.select(demo, "v1_criteria", launch_id=launch["launch_id"], criterion="divergence")
    asked = ("explain", "divergence", "--run", "h200", "--kernel", "3")
    assert json.loads(on_demo(*asked, "-o", "json").out)["trace"][0]["value"] == criterion["value"]
    assert f"(ncu_raw.csv.gz line {launch['line']})" in on_demo(*asked).out


def test_explain_says_how_to_collect_what_is_missing(cli, fixtures):
    cli("upload", fixtures / "ncu_raw" / "plain.csv", "--run", "plain")
    out = cli("explain", "sol_sm_fraction", "--run", "plain", "--kernel", "0").out
    assert "not in this export; collect it with: ncu --section SpeedOfLight" in out
    start = cli("explain", "start_ns", "--run", "plain", "--kernel", "0").out
    assert "not in this export" in start
    assert "collect it" not in start


def test_explain_refuses_what_it_cannot_answer(on_demo):
    unknown = on_demo("explain", "divergense")
    assert unknown.code == 3
    assert "did you mean 'divergence'" in unknown.err
    assert on_demo("explain", "divergence", "--kernel", "3").code == 2


def test_formats_lists_every_reader_and_shows_its_page(cli):
    listed = cli("formats").out
    for name, page in specs.format_pages().items():
        assert name in listed
        assert cli("formats", name).out.strip() == page.strip()
    wrong = cli("formats", "ncu-rwa")
    assert wrong.code == 3
    assert "did you mean 'ncu-raw'" in wrong.err
