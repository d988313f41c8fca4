"""Pictures of heat maps: what they show, what hostile strings do in them, and the way there from a log."""

import json
import re
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from click.testing import CliRunner

from profsvc import store
from profsvc.analysis.thermocouples.heat_map import DieMap, Log, heat_map
from profsvc.cli.application import app
from profsvc.errors import UsageError
from profsvc.formulas.thermocouples import heat_map as maps
from profsvc.reports.plots import figure
from profsvc.reports.plots import heat_map as report

HOSTILE = "$\\frac{1}{0}$ <script>alert(1)</script> & \x1b[2J\u202e\ud800 \u6e29\u5ea6 ]]> %s {x} \\n " + "long " * 40
SVG = "{http://www.w3.org/2000/svg}"


def die_map(names: tuple[str, ...] = ("T0", "T1", "T2", "T3"), *, difference: bool = False, **more) -> DieMap:
    x, y, T = np.array([2.0, 10, 2, 10]), np.array([2.0, 2, 10, 10]), np.array([60.0, 61, 62, 71])
    T = T - 63 if difference else T
    found = maps.heat_map(x, y, T, np.linspace(2, 10, 9), np.linspace(2, 10, 9))
    made = DieMap(
        found.grid_x_mm, found.grid_y_mm, found.temperature_c, maps.band_edges(T), names, x, y, T,
        float(found.hot_c), float(found.hot_x_mm), float(found.hot_y_mm), difference,
        np.array([(0.0, 0), (12, 0), (12, 12), (0, 12)]), True, (),
    )  # fmt: skip
    return made._replace(**more)


def words(svg: bytes) -> str:
    root = ET.fromstring(svg)
    return "\n".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))


def test_a_picture_shows_sensors_hot_spot_and_scale():
    svg = report.picture(die_map(), "run 7", "svg")
    shown = words(svg)
    for expected in ("run 7", "T3", "71.0", "60.0", "\u00b0C", "hottest: 71.0 \u00b0C at (10.0, 10.0) mm", "x (mm)"):
        assert expected in shown
    assert b"http" not in svg.replace(b"http://www.w3.org/", b"").replace(b"http://purl.org/dc/", b"").replace(
        b"http://creativecommons.org/ns#", b""
    )
    assert b"<script" not in svg
    changed = words(report.picture(die_map(difference=True), "a minus b"))
    for expected in ("+8.0", "\u22123.0", "warmed most: +8.0 K", "a minus b"):
        assert expected.replace("\u2212", "-") in changed.replace("\u2212", "-")


@pytest.mark.parametrize("difference", [False, True])
def test_light_and_dark_differ_and_are_what_they_say(difference):
    made = die_map(difference=difference)
    for form, magic in (("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml")):
        light, dark = (report.picture(made, "run", form, dark=dark) for dark in (False, True))
        assert light.startswith(magic)
        assert dark.startswith(magic)
        assert light != dark
    assert figure.DARK.back.encode() in dark
    assert figure.LIGHT.back.encode() in light


def colours(made: DieMap) -> set[str]:
    svg = report.picture(made, "", "svg").decode()
    return set(re.findall(r"fill: (#[0-9a-f]{6})", svg[svg.index("QuadContourSet") :].split("</g>")[0]))


def test_a_difference_of_one_sign_has_the_shades_of_a_map_and_of_two_signs_those_of_its_bands():
    warmed = die_map()._replace(difference=True)
    assert colours(warmed) == colours(die_map())
    both = die_map(difference=True)
    assert (both.edges_c[0], both.edges_c[-1]) == (-4, 8)
    assert len(colours(both)) == both.edges_c.size - 1


def test_a_map_that_is_the_same_everywhere_has_a_picture():
    flat = die_map()
    flat = flat._replace(temperature_c=np.full((9, 9), 60.0), edges_c=maps.band_edges(np.full(4, 60.0)))
    assert report.picture(flat, "flat", "png")


def test_hostile_strings_are_only_shown():
    made = die_map((HOSTILE, "$x$", "<b>", "\n\r\t\0"), notes=(HOSTILE, "\u2028two\nlines"))
    svg = report.picture(made, HOSTILE, "svg")
    shown = words(svg)
    assert "$\\frac{1}{0}$ <script>alert(1)</script> & \\x1b[2J\\u202e\\ud800" in shown
    assert "\x1b" not in shown
    assert b"<script" not in svg
    assert "$x$" in shown
    assert max(len(line) for line in shown.splitlines()) <= report.LINE
    assert report.picture(made, HOSTILE, "png").startswith(b"\x89PNG")


def test_the_same_map_gives_the_same_bytes_whatever_the_settings_and_threads():
    made = die_map()
    with ThreadPoolExecutor(4) as pool:
        pictures = list(pool.map(lambda n: report.picture(made, "run", figure.FORMS[n % 2]), range(8)))
    assert len(set(pictures)) == 2
    with matplotlib.rc_context({"text.usetex": True, "axes.labelsize": 40, "savefig.transparent": True}):
        assert report.picture(made, "run") == pictures[0]
        assert matplotlib.rcParams["text.usetex"]


def test_unknown_values_leave_holes():
    made = die_map()
    T = made.temperature_c.copy()
    T[:3, :3] = np.nan
    holed = made._replace(temperature_c=T, sensor_c=np.array([np.nan, 61, 62, 71]), outline_is_die=False)
    assert "no value" in words(report.picture(holed, "run"))
    found = report.data(holed, "run")
    assert found["temperature"][0][0] is None
    assert found["sensors"][0]["temperature"] is None
    json.dumps(found, allow_nan=False)


def test_many_notes_leave_room_for_the_map():
    shown = words(report.picture(die_map(notes=tuple(f"note {n}" for n in range(30))), "run"))
    assert "note 4" in shown
    assert "note 5" not in shown
    assert "and 25 more notes" in shown


def test_data_says_what_the_picture_shows():
    made = die_map()
    found = report.data(made, "run")
    assert found["hot_spot"] == {"x_mm": 10.0, "y_mm": 10.0, "temperature": 71.0}
    assert found["sensors"][1] == {"name": "T1", "x_mm": 10.0, "y_mm": 2.0, "temperature": 61.0}
    assert (found["unit"], found["outline_is_die"], found["title"]) == ("degC", True, "run")
    np.testing.assert_array_equal(found["temperature"], made.temperature_c)
    assert len(found["grid_x_mm"]) == len(found["temperature"][0])
    assert report.data(die_map(difference=True), "")["unit"] == "K"


def test_an_unknown_form_is_refused():
    with pytest.raises(UsageError, match="unknown image format 'pdf'; choose one of svg, png"):
        report.picture(die_map(), "run", "pdf")


def test_from_a_log_to_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A recording of PicoLog in, with places said on the command line; a picture out."""
    monkeypatch.setenv("PROFSVC_STORE", str(tmp_path / "store.sqlite"))
    names = [f"TC-08 Ch {k} Last" for k in range(1, 5)]
    header = ",".join(['""', *(f'"{name} (\u00b0C)"' for name in names)])
    settled = [60.2, 61.4, 62.6, 71.3]
    lines = [
        ",".join(
            [f'"00:{n // 60:02}:{n % 60:02}"', *(f'"{T + 0.05 * ((n + k) % 2):.2f}"' for k, T in enumerate(settled))]
        )
        for n in range(120)
    ]
    (tmp_path / "die.csv").write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    places = [f"{name}={x},{y}" for name, (x, y) in zip(names, [(2, 2), (10, 2), (2, 10), (10, 10)], strict=True)]
    options = [word for place in places for word in ("--position", place)]
    result = CliRunner().invoke(app, ["upload", str(tmp_path / "die.csv"), "--run", "hot", *options])
    assert result.exit_code == 0, result.output
    engine = store.connect(str(tmp_path / "store.sqlite"))
    try:
        run = store.find_run(engine, "hot")
        log = Log(*(store.table(engine, view, run_id=run) for view in ("v1_sensors", "v1_samples")))
    finally:
        engine.dispose()
    found = heat_map(log)
    assert found.reason == ""
    assert found.die_map is not None
    np.testing.assert_allclose(found.die_map.sensor_c, np.array(settled) + 0.025, atol=1e-3)
    shown = words(report.picture(found.die_map, "hot"))
    assert "hottest: 71.3 \u00b0C at (10.0, 10.0) mm" in shown
    assert "TC-08 Ch 1 Last" in shown
