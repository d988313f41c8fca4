"""``power --heat-map`` and ``--rotated``: maps in files, rows in every form, and what is refused."""

import csv
import io
import json

import pytest

from profsvc import store
from profsvc.views.power.heat_map import ROWS
from tests.views import thermocouple_logs as logs


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("heat") / "store.sqlite"
    engine = store.open_store(str(file), pooled=True)
    logs.fill_all(engine)
    engine.dispose()
    return file


@pytest.fixture
def on_spacer(cli, file):
    """The command line on a store with runs of a spacer, which no test changes."""
    return lambda *words: cli("--store", file, "power", *words)


@pytest.mark.parametrize("form", ["csv", "json", "ndjson", "md", "parquet"])
def test_every_form_holds_every_row(on_spacer, tmp_path, form):
    result = on_spacer("spacer", "--heat-map", tmp_path / "m.json", "-o", form)
    assert (result.code, result.err) == (0, f"written: {tmp_path / 'm.json'}\n")
    drawn = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert drawn["hot_spot"]["x_mm"] == 21
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(result.out)))
    elif form == "json":
        answer = json.loads(result.out)
        rows = answer["models"]
        assert (answer["ok"], answer["minus"], answer["heat_map"]) == (True, None, drawn)
    elif form == "ndjson":
        rows = [json.loads(line) for line in result.out.splitlines()]
    else:
        assert result.raw
        return
    assert set(ROWS) <= set(rows[0])
    assert [row["sensor"] for row in rows if row["quantity"] == "steady_temperature"] == list(logs.PLACES)
    assert [float(row["value"]) for row in rows if row["quantity"] == "hot_spot_y"] == [12]


def test_pictures_of_a_map_and_of_a_difference(on_spacer, tmp_path):
    page = on_spacer("spacer", "--heat-map", tmp_path / "a.svg", "--minus", "idle", "--calibration", "plates").out
    drawn = (tmp_path / "a.svg").read_bytes()
    assert drawn.startswith(b"<?xml")
    assert b"Heat map of run spacer minus run idle" in drawn
    assert page.startswith("heat map of run spacer (id 1), minus run idle (id 2)\n  warning: the die size is unknown")
    assert "  calibrated by run plates (id 3)\n\nthermocouples on the die\nsensor  " in page
    assert "\n    hot_spot 18." in page
    assert on_spacer("spacer", "--heat-map", tmp_path / "b.PNG", "--rc-s", "35").code == 0
    assert (tmp_path / "b.PNG").read_bytes().startswith(b"\x89PNG")


def test_a_turned_spacer(on_spacer):
    page = on_spacer("spacer", "--rotated", "turned").out
    assert page.startswith(
        "spacer of run spacer (id 1), rotated by 90 degrees in run turned (id 4)\n  both agree on the chip"
    )
    back = on_spacer("spacer", "--rotated", "turned", "--angle", "0")
    assert back.code == 0
    said = "remounted in run turned (id 4)\n  they disagree: the hot spot moves by 12.7 mm; the limit is 9 mm"
    assert said in back.out
    assert "\n  repeatability test\n    hot_move 12.73 mm\n" in back.out
    answer = json.loads(on_spacer("spacer", "--rotated", "turned", "-o", "json").out)
    assert (answer["passed"], answer["angle_deg"], answer["rotated"]["name"]) == (True, 90, "turned")


def test_refusals_have_the_figure_and_their_code(on_spacer, tmp_path):
    for words, code, message in (
        (("drifting",), 6, "9 of 9 sensors are not steady; the worst is T"),
        (("nowhere",), 3, "none of the 9 temperature channels has a position on the die; upload the log with"),
        (("spacer", "--minus", "idel"), 3, "did you mean 'idle'"),
        (("spacer", "--minus", "nowhere"), 6, "the subtracted run: none of the 9 temperature channels has a position"),
    ):
        result = on_spacer(*words, "--heat-map", tmp_path / "m.svg")
        assert (result.code, result.out) == (code, "")
        assert message in result.err
    assert not list(tmp_path.glob("*.svg"))
    assert " power id:1 --heat-map FILE.svg" in on_spacer("spacer").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--heat-map", "a.gif"), "--heat-map 'a.gif' has no known image format: end it with .svg, .png or .json"),
        (("--minus", "b"), "--minus needs --heat-map; add it"),
        (("--minus", "b", "--rotated", "c"), "--minus needs --heat-map; add it"),
        (("--angle", "90"), "--angle needs --rotated; add it"),
        (("--rc-s", "9"), "--rc-s needs --heat-map or --rotated; add it"),
        (("--calibration", "c"), "--calibration needs --heat-map or --rotated; add it"),
        (
            ("--heat-map", "a.svg", "--rotated", "b"),
            "--heat-map is about thermocouples and excludes --rotated; give one of them",
        ),
        (
            ("--rotated", "b", "--plot", "a.svg"),
            "--rotated is about thermocouples and excludes --plot; give one of them",
        ),
        (("--heat-map", "a.svg", "--rc-s", "0"), "--rc-s is 0, but must be a finite number of s above 0"),
        (("--rotated", "b", "--angle", "nan"), "--angle is nan, but must be a finite number of degrees"),
    ],
)
def test_a_wrong_option_is_said_before_any_work(cli, store_file, words, message):
    result = cli("power", "spacer", *words)
    assert (result.code, result.out, result.err) == (2, "", f"Error: {message}\n")
    assert not store_file.exists()


def test_names_of_channels_do_nothing_on_the_terminal_nor_in_the_picture(cli, tmp_path):
    name = "<script>\x1b[2J"
    values = {name if channel == "T5" else channel: value for channel, value in logs.field().items()}
    (tmp_path / "log.csv").write_bytes(logs.log(values))
    places = [w for k, (x, y) in zip(values, logs.PLACES.values(), strict=True) for w in ("--position", f"{k}={x},{y}")]
    columns = [
        word for channel in ("t=time:s", *(f"{k}=temperature:degC" for k in values)) for word in ("--column", channel)
    ]
    assert cli("upload", tmp_path / "log.csv", "--run", "r", *places, *columns).code == 0
    shown = cli("power", "r", "--heat-map", tmp_path / "m.svg")
    assert shown.code == 0
    assert "\x1b" not in shown.out
    assert "<script>\\x1b[2J" in shown.out
    drawn = (tmp_path / "m.svg").read_text(encoding="utf-8")
    assert "<script" not in drawn
    assert "\x1b" not in drawn
