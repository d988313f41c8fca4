"""``power``: windows, pictures, and what it refuses."""

import csv
import io
import json

import pytest

from profsvc import store
from tests.views import power_logs


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("power") / "store.sqlite"
    engine = store.open_store(str(file), pooled=True)
    power_logs.fill(engine)
    engine.dispose()
    return file


@pytest.fixture
def on_sweep(cli, file):
    """The command line on a store with one run of power, which no test changes."""
    return lambda *words: cli("--store", file, "power", *words)


@pytest.mark.parametrize("form", ["csv", "json", "ndjson", "md", "parquet"])
def test_every_form_holds_every_window(on_sweep, form):
    result = on_sweep("sweep", "-o", form)
    assert (result.code, result.err) == (0, "")
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(result.out)))
    elif form == "json":
        answer = json.loads(result.out)
        rows = answer["windows"]
        assert answer["ok"]
        assert {"coefficients", "models", "quality"} <= set(answer)
    elif form == "ndjson":
        rows = [json.loads(line) for line in result.out.splitlines()]
    else:
        assert result.raw
        return
    assert [row["window"] for row in rows] == ["run", "idle", *(f"mem, {n} SM{'s' * (n > 1)}" for n in power_logs.SMS)]


def test_the_page_has_a_row_a_window_and_says_why_it_is_not_corrected(on_sweep):
    page = on_sweep("sweep").out
    assert page.startswith(
        "power of run sweep (id 1) of project default\n\npower.draw.instant of GPU 0 (NVIDIA H200)\n"
    )
    assert "  not corrected (run): a whole run contains several loads" in page
    assert "idle_power_w" in page
    computed = on_sweep("sweep", "--host-power", "30", "--sensor", "power.draw.instant").out
    assert "computed for this call only; stored results are unchanged" in computed


def test_pictures_are_written_and_named(on_sweep, tmp_path):
    result = on_sweep("sweep", "--plot", tmp_path / "a.svg", "-o", "csv")
    names = ["a.svg", "a-sms.svg", "a-per-watt.svg"]
    assert (result.code, result.err.splitlines()) == (0, [f"written: {tmp_path / name}" for name in names])
    assert all((tmp_path / name).read_bytes().startswith(b"<?xml") for name in names)
    on_sweep("sweep", "--plot", tmp_path / "b.PNG")
    assert (tmp_path / "b.PNG").read_bytes().startswith(b"\x89PNG")
    assert on_sweep("sweep", "--plot", tmp_path / "c.html").err == f"written: {tmp_path / 'c.html'}\n"
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert page.count('<img src="data:image/svg+xml;base64,') == 3
    assert page.count('prefers-color-scheme: dark)" srcset=') == 3
    assert "<script" not in page
    assert {path.name for path in tmp_path.iterdir()} == {*names, "b.PNG", "b-sms.PNG", "b-per-watt.PNG", "c.html"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--plot", "a.gif"), "--plot 'a.gif' has no known image format: end it with .svg, .png or .html"),
        (("--plot", "svg"), "--plot 'svg' has no known image format: end it with .svg, .png or .html"),
        (("--reference-temperature", "313"), "--reference-temperature is 313, but must be -60 to 150 degrees C"),
        (("--reference-temperature", "nan"), "--reference-temperature is nan, but must be -60 to 150 degrees C"),
        (("--host-power", "-1"), "--host-power is -1, but must be a finite number of W, not negative"),
        (("--host-power", "inf"), "--host-power is inf, but must be a finite number of W, not negative"),
        (("--offset", "nan"), "--offset is nan, but must be a finite number of s"),
    ],
)
def test_a_wrong_option_is_said_before_any_work(cli, store_file, words, message):
    result = cli("power", "sweep", *words)
    assert (result.code, result.out, result.err) == (2, "", f"Error: {message}\n")
    assert not store_file.exists()


def test_what_is_not_there_is_not_found(cli, on_sweep, fixtures):
    assert on_sweep("swep").code == 3
    unknown = on_sweep("sweep", "--sensor", "power.draw.instan")
    assert (unknown.code, "did you mean 'power.draw.instant'" in unknown.err) == (3, True)
    cli("upload", fixtures / "ncu_raw" / "plain.csv", "--run", "profile")
    without = cli("power", "profile")
    assert (without.code, without.out) == (3, "")
    assert "run 'profile' has no log of power; upload one (" in without.err
    assert "): profsvc upload --run profile FILE\n" in without.err
    cli("upload", fixtures / "nvidia_smi" / "units.csv", "--run", "profile")
    assert cli("power", "profile").code == 0


def test_names_of_an_upload_do_nothing_on_the_terminal_nor_in_the_page(cli, store_file, tmp_path):
    name = "\x1b[2J<script>alert(1)</script>"
    (tmp_path / "log.csv").write_text(power_logs.log(), encoding="utf-8")
    (tmp_path / "marks.csv").write_text(power_logs.marks().replace(",mem,", f',"{name}",'), encoding="utf-8")
    result = cli("upload", tmp_path / "log.csv", tmp_path / "marks.csv", "--run", name, "--timezone", "UTC")
    assert result.code == 0
    shown = cli("power", name, "--plot", tmp_path / "p.html")
    assert "\x1b" not in shown.out
    assert "\\x1b[2J<script>" in shown.out
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "\x1b" not in page


def test_two_runs_are_compared_window_by_window(cli, file):
    def compare(*words):
        return cli("--store", file, "compare", "sweep", "sweep", *words)

    rows = list(csv.DictReader(io.StringIO(compare("--power", "-o", "csv").out)))
    assert [row["window"] for row in rows][:3] == ["run", "idle", "mem, 1 SM"]
    assert {float(row["power_change"]) for row in rows} == {0}
    assert compare("--fail-on", "power=1%", "--fail-on", "energy=1%").code == 0
    assert compare("--power").out.startswith("default/sweep -> default/sweep\nwarning: both are the same run\n")
    assert json.loads(compare("-o", "json").out)["power"][0]["window"] == "run"


def test_a_limit_that_nothing_can_break_does_not_pass(on_demo):
    result = on_demo("compare", "h200", "h200", "--fail-on", "power=3%")
    assert (result.code, result.err) == (
        3, "limit power not checked: the runs have no window of power in common\n",
    )  # fmt: skip
    assert "have no power window in common" in on_demo("compare", "h200", "h200", "--power").out
