"""Pictures of power: nothing of the data is lost on the way, and no name in them acts."""

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.errors import UsageError
from profsvc.reports.plots.power import (
    MAX_LANES,
    Band,
    Efficiency,
    Sweep,
    Track,
    against_sms,
    lanes,
    over_time,
    performance_per_watt,
    thinned,
)

HOSTILE = "_$x^{ \\frac $ <script>&\x1b[2J\n\u202e\ud800"
TIME = np.arange(0.0, 40.0, 0.5)
POWER = Track("power.draw", TIME, 80.0 + TIME)
HEAT = Track("t", TIME, 30.0 + TIME / 10)
BANDS = [Band("idle", 0.0, 10.0, True), Band("mem, 16 SMs", 10.0, 40.0), Band("short", 12.0, 12.1)]
SMS = np.array([1.0, 16.0, 66.0])
SWEEP = Sweep("mem", SMS, 90 + SMS, "linear", SMS, 90 + SMS, 80 + SMS, 100 + SMS)
BEST = Efficiency("mem", SMS, np.array([1.0, 3.0, 2.5]), 16.0, 16.0, 66.0)


def words(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)  # the picture is well formed
    assert not [one for one in root.iter() if one.tag.rpartition("}")[2] in {"script", "a", "foreignObject"}]
    return ["".join(one.itertext()).strip() for one in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_axis_of_time_shows_power_temperature_and_what_ran():
    svg = over_time([POWER, Track("corrected", TIME, 79.0 + TIME)], [HEAT], BANDS, "run r", "begin")
    shown = words(svg)
    axes = {"power (W)", "temperature (\u00b0C)", "windows", "time since begin (s)"}
    assert {*axes, "power.draw", "corrected", "t", "idle", "mem, 16 SMs", "run r"} <= set(shown)
    assert "short" not in shown  # it has no room for its name
    assert svg == over_time([POWER, Track("corrected", TIME, 79.0 + TIME)], [HEAT], BANDS, "run r", "begin")


def test_a_log_without_temperature_or_windows_is_drawn_alone():
    shown = words(over_time([POWER], [], [], "run r", "begin"))
    assert "windows" not in shown
    assert "temperature (\u00b0C)" not in shown


@pytest.mark.parametrize(
    "draw",
    [
        lambda name: over_time(
            [POWER._replace(label=name)], [HEAT._replace(label=name)], [Band(name, 0.0, 40.0)], name, name
        ),
        lambda name: against_sms([SWEEP._replace(label=name, law=name)], name),
        lambda name: performance_per_watt([BEST._replace(label=name)], name),
    ],
    ids=["over_time", "against_sms", "performance_per_watt"],
)
def test_a_name_is_shown_as_it_is_and_does_nothing(draw):
    shown = [text for text in words(draw(HOSTILE)) if "frac" in text]
    assert shown
    assert all("_$x^{ \\frac $ <script>&\\x1b[2J" in text for text in shown)


def test_laws_and_the_best_number_of_sms_are_named():
    assert "mem: linear law, 95 % prediction interval" in words(against_sms([SWEEP], "t"))
    assert "mem: best on 16 SMs (16 to 66 not significantly different)" in words(performance_per_watt([BEST], "t"))
    alone = BEST._replace(low=np.nan, high=np.nan, per_joule=np.full(3, np.nan))
    assert "mem: best on 16 SMs" in words(performance_per_watt([alone], "t"))


def test_light_and_dark_and_png():
    light, dark = (against_sms([SWEEP], "t", dark=dark) for dark in (False, True))
    assert (b"#0d1117" in light, b"#0d1117" in dark) == (False, True)
    assert against_sms([SWEEP], "t", "png").startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="unknown image format 'gif'; choose one of svg, png"):
        against_sms([SWEEP], "t", "gif")


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(-1e6, 1e6) | st.just(np.nan)), max_size=300), st.integers(1, 20))
def test_a_thinned_log_keeps_its_ends_and_invents_nothing(rows, stretches):
    time, value = np.array(rows, float).reshape(-1, 2).T
    t, v = thinned(time, value, stretches)
    known, kept = value[~np.isnan(value)], v[~np.isnan(v)]
    assert (np.diff(t) >= 0).all()
    assert set(kept.tolist()) <= set(known.tolist())
    if known.size:
        assert (kept.min(), kept.max()) == (known.min(), known.max())
    # Two readings and a missing one in each stretch, and at most one break between two of them.
    assert len(t) <= 2 * (3 * stretches + 2)
    if 0 < known.size == time.size:
        assert (t[0], t[-1]) == (time.min(), time.max())


def test_a_spike_in_every_stretch_breaks_no_line():
    time = np.arange(100_000.0)
    _, v = thinned(time, np.where(time % 100 == 50, 9.0, np.where(time % 100 == 51, -9.0, 0.0)), 1000)
    assert not np.isnan(v).any()


def test_no_line_is_drawn_where_readings_are_missing():
    time = np.concatenate([np.arange(0.0, 10.0), np.arange(100.0, 110.0)])
    t, v = thinned(time, np.ones(20))
    assert t[np.isnan(v)].tolist() == [54.5]
    long = np.linspace(0, 1, 10_000)
    t, v = thinned(long, np.where((long > 0.4) & (long < 0.6), np.nan, 1.0), 100)
    assert np.isnan(v[(t > 0.41) & (t < 0.59)]).all()


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=40))
def test_bands_in_one_lane_do_not_overlap(rows):
    bands = [Band("b", float(begin), float(begin + length)) for begin, length in rows]
    chosen = lanes(bands)
    assert all(0 <= lane < MAX_LANES for lane in chosen)
    for lane in range(MAX_LANES - 1):
        own = sorted((band.begin_s, band.end_s) for band, at in zip(bands, chosen, strict=True) if at == lane)
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(own))
