"""``runs`` and ``show``, and the forms of every command that reads."""

import csv
import io
import json
import re

import pytest
from pyarrow import parquet

from profsvc import settings

FORMS = ["table", "csv", "json", "ndjson", "md", "parquet"]
READING = {
    "runs": ["runs"],
    "show": ["show", "h200"],
    "kernel": ["show", "h200", "--kernel", "saxpy"],
    "explain": ["explain", "divergence", "--run", "h200", "--kernel", "3"],
    "reproduced": ["explain", "reproduced"],
    "definition": ["explain", "divergence"],
    "formats": ["formats"],
    "format": ["formats", "ncu-raw"],
    "devices": ["devices"],
    "catalogue": ["devices", "--catalogue"],
    "compare": ["compare", "h200", "h200"],
    "sql": ["sql", "select kernel_short, duration_ns from v1_launches"],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", READING.values(), ids=READING)
def test_every_reading_command_answers_in_every_form(on_demo, command, form):
    result = on_demo(*command, "-o", form)
    assert (result.code, result.err) == (0, "")
    if form == "json":
        assert json.loads(result.out)["ok"] is True
    elif form == "ndjson":
        assert all(isinstance(json.loads(line), dict) for line in result.out.splitlines())
        assert result.out
    elif form == "csv":
        widths = {len(row) for row in csv.reader(io.StringIO(result.out, newline=""))}
        assert len(widths) == 1
    elif form == "parquet":
        assert parquet.read_table(io.BytesIO(result.raw)).num_rows > 0
    else:
        assert len(result.out.splitlines()) > 1


def test_an_unknown_form_is_a_wrong_question(on_demo):
    result = on_demo("runs", "-o", "xml")
    assert (result.code, result.out) == (2, "")


def test_runs_are_listed_newest_first_and_by_project(cli, fixtures):
    for project, file in (("a", "plain.csv"), ("b", "german.csv")):
        cli("upload", fixtures / "ncu_raw" / file, "--project", project)
    rows = json.loads(cli("runs", "-o", "json").out)["rows"]
    assert [row["run_id"] for row in rows] == [2, 1]
    assert [row["project"] for row in json.loads(cli("runs", "--project", "a", "-o", "json").out)["rows"]] == ["a"]


def test_show_without_a_name_is_the_newest_run(cli, fixtures):
    result = cli("show")
    assert (result.code, result.out) == (3, "")
    assert "profsvc upload FILE" in result.err
    for file in ("plain.csv", "german.csv"):
        cli("upload", fixtures / "ncu_raw" / file)
    assert cli("show").out == cli("show", "german").out
    assert cli("show", "--kernel", "0").out == cli("show", "german", "--kernel", "0").out


def test_a_log_of_a_board_names_the_device_of_its_run(cli, tmp_path):
    head = "timestamp, index, name, power.draw [W], temperature.gpu"
    (tmp_path / "smi.csv").write_text(f"{head}\n2026/03/04 10:00:00.000, 0, NVIDIA T4, 31.5 W, 40\n")
    (tmp_path / "meter.csv").write_text("time,power [W]\n2026-03-04T10:00:00Z,1\n2026-03-04T10:00:01Z,2\n")
    for name, device in (("smi", "NVIDIA T4"), ("meter", "an unknown device")):
        assert cli("upload", "--run", name, tmp_path / f"{name}.csv").code == 0
        shown = cli("show", name, "--all").out.splitlines()
        assert shown[0].endswith(f"of project default on {device}")
        assert shown[-1].startswith("power and energy: profsvc power ")
        assert cli(*shown[-1].split()[4:]).code == 0
    rows = json.loads(cli("runs", "-o", "json").out)["rows"]
    assert [(row["name"], row["device"]) for row in rows] == [("meter", None), ("smi", "NVIDIA T4")]


def test_an_empty_store_answers(cli):
    assert cli("runs", "-o", "ndjson").out == ""
    assert cli("devices", "-o", "csv").out == "device_id,name,compute_capability,sms\n"
    missing = cli("show", "nightly")
    assert missing.code == 3
    assert missing.err == "Error: no run named 'nightly'; there is none yet\n"


def test_show_has_a_row_a_launch(on_demo):
    page = on_demo("show", "h200", "--all").out
    assert "36 lines: 34 stored, 2 skipped, 0 rejected" in page
    assert "whole run: 17.06 ms of kernels" in page
    rows = list(csv.DictReader(io.StringIO(on_demo("show", "h200", "-o", "csv").out)))
    assert [int(row["launch"]) for row in rows] == list(range(34))
    assert all(float(row["potential"]) >= 1 for row in rows)


def test_a_launch_is_opened_by_number_and_a_kernel_by_name(on_demo):
    assert on_demo("show", "h200", "--kernel", "3").out.startswith("#3 reduce_v4_firstadd(")
    assert on_demo("show", "h200", "--kernel", "#3").out == on_demo("show", "h200", "--kernel", "3").out
    assert on_demo("show", "h200", "3").out == on_demo("show", "h200", "--kernel", "3").out
    twice = on_demo("show", "h200", "3", "--kernel", "saxpy")
    assert (twice.code, "say the same; give one" in twice.err) == (2, True)
    opened = json.loads(on_demo("show", "h200", "--kernel", "strided_copy", "-o", "json").out)
    assert [one["launch"]["launch_index"] for one in opened["launches"]] == list(range(8, 14))
    part = json.loads(on_demo("show", "h200", "--kernel", "bankconf", "-o", "json").out)
    assert [one["launch"]["launch_index"] for one in part["launches"]] == [1]


@pytest.mark.parametrize("kernel", ["reduce_v4_firstad_d", "999"])
def test_an_unknown_kernel_is_not_found(on_demo, kernel):
    result = on_demo("show", "h200", "--kernel", kernel)
    assert (result.code, result.out) == (3, "")
    assert ("did you mean 'reduce_v4_firstadd'" in result.err) == (kernel != "999")
    assert f"no kernel named {kernel!r}" in result.err
    assert ("it has launches #0 to #33" in result.err) == (kernel == "999")


def test_a_kernel_without_a_name_is_called_so(cli, fixtures, tmp_path):
    export = tmp_path / "unnamed.csv"
    lines = (fixtures / "ncu_raw" / "plain.csv").read_text()
    export.write_text(re.sub(r'"saxpy\([^"]*"', '""', lines))
    cli("upload", export, "--run", "r")
    assert cli("show", "r", "--kernel", "0").out.startswith("#0 (no name)\n")


def test_an_unknown_run_is_not_found(on_demo):
    result = on_demo("show", "h20")
    assert result.code == 3
    assert "did you mean 'h200'?" in result.err


def test_show_says_why_launches_of_a_trace_have_no_criteria(cli, fixtures, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    cli("upload", fixtures / "nvprof" / "gpu_trace.csv", "--run", "trace")
    shown = cli("show", "trace", "--all").out
    why = "the metrics that criteria need; to collect them, run: nvprof --print-gpu-trace --metrics all"
    assert ", divergence, " in shown
    assert f": no launch of the run has {why}" in shown
    assert "None" not in shown
    opened = cli("show", "trace", "--kernel", "0").out
    why = "the export lacks the metrics for the criteria of this launch; "
    assert f"none: {why}" in opened
    assert why in cli("explain", "divergence", "--run", "trace", "--kernel", "0").out


def test_compare_prints_both_runs_and_fails_only_when_asked(on_demo):
    plain = on_demo("compare", "h200", "h200")
    assert plain.code == 0
    assert plain.out.startswith("demo/h200 -> demo/h200\nwarning: both are the same run\n")
    assert "no change overall (geometric mean of" in plain.out
    assert on_demo("compare", "h200", "h200", "--fail-on", "duration=0%").code == 0
    mapped = ("--map", "reduce_v7_multielement=reduce_v1_divergent", "--fail-on", "duration=5%", "--no-record")
    worse = on_demo("compare", "h200", "h200", *mapped)
    assert (worse.code, worse.err) == (1, "reduce_v1_divergent: duration up 892.2 %, allowed 5 %\n")
    assert on_demo("compare", "h200", "h200", "--fail-on", "speed").code == 2
    assert on_demo("compare", "h200", "nothing").code == 3


def test_a_list_without_runs_says_so(cli, on_demo):
    empty, other = cli("runs"), on_demo("runs", "--project", "nope", "-o", "csv")
    assert (empty.code, empty.err) == (0, "the store has no runs yet; add one with: profsvc upload FILE\n")
    assert other.err == "no run of project 'nope'\n"
    assert on_demo("runs").err == ""


def test_criteria_that_lack_for_one_reason_share_a_line(cli, fixtures, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    cli("upload", fixtures / "ncu_raw" / "plain.csv", "--run", "r")
    lines = cli("show", "r", "--all").out.splitlines()
    (alike,) = [line for line in lines if line.endswith("no launch of the run has this criterion")]
    assert alike.count(",") > 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("token list", "no tokens yet: "), ("schedule list", "nothing is scheduled; add a job with: "),
        ("undelete", "no deleted upload can be restored"), ("report nightly --list", "no stored report; "),
    ],
)  # fmt: skip
def test_an_empty_list_says_that_it_is(cli, command: str, said: str) -> None:
    empty = cli(*command.split())
    assert (empty.code, empty.err.startswith(said), empty.err.count("\n")) == (0, True, 1)


def test_the_version_is_told(cli) -> None:
    assert cli("--version").out == f"profsvc {settings.version()}\n"


def test_the_wall_time_of_a_trace(cli, fixtures):
    cli("upload", fixtures / "nsys_sqlite" / "two_devices.sqlite", "--run", "trace")
    first = cli("show", "trace").out.splitlines()
    begin = next(number for number, line in enumerate(first) if line.startswith("Wall time "))
    assert "no compute kernel runs in" in first[begin]
    assert first.index("", begin) - begin <= 5
    assert any(line.endswith("show id:1 --wall-time") for line in first)
    text = cli("show", "trace", "--wall-time").out
    assert text.startswith("wall time of run trace (id 1)\n\ndevice 0, ")
    assert "Kernels " in text
    view = json.loads(cli("show", "trace", "--wall-time", "-o", "json").out)
    for lane in view["wall_time"]:
        assert sum(row["time_ns"] for row in lane["budget"]) == lane["wall_ns"]
    rows = list(csv.DictReader(io.StringIO(cli("show", "trace", "--wall-time", "-o", "csv").out)))
    assert [row["category"] for row in rows] == [row["category"] for one in view["wall_time"] for row in one["budget"]]
    assert json.loads(cli("show", "trace", "-o", "json").out)["wall_time"] == view["wall_time"]
    wrong = cli("show", "trace", "--wall-time", "--all")
    assert (wrong.code, wrong.out) == (2, "")


def test_a_run_without_a_trace_has_no_wall_time(on_demo):
    assert "Wall time" not in on_demo("show", "h200").out
    assert "its wall time is unknown" in " ".join(on_demo("show", "h200", "--wall-time").out.split())
