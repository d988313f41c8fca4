"""A launch with other warps, grids, blocks and SMs: each step of a measured sweep out of the step beside it."""

import csv
from pathlib import Path

import numpy as np
import pytest

from profsvc import pipeline, store
from profsvc.analysis.models import loaded_launch, what_if
from profsvc.views.models.launch_models import known_of

SWEEP = Path(__file__).parents[3] / "fixtures" / "sweep"
AXES = {"warps": "warps", "grid": "blocks", "block": "block_threads"}
WITHIN = 0.15


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """The launches of the sweep by kernel and what varies: its value, the measured time, counters, machine, inputs."""
    engine = store.open_store(str(tmp_path_factory.mktemp("sweep") / "store.sqlite"), pooled=True)
    with (SWEEP / "ncu_raw_base.csv.gz").open("rb") as stream:
        pipeline.ingest(engine, stream, "ncu_raw_base.csv.gz", store.RunInfo(name="sweep"))
    with (SWEEP / "steps.csv").open(encoding="utf-8") as file:
        labels = list(csv.DictReader(file))
    launches = sorted(store.select(engine, "v1_launches"), key=lambda launch: launch["launch_index"])
    families = {}
    for launch, label in zip(launches, labels, strict=True):
        known = known_of(engine, launch)
        machine = what_if.Machine(known.figures, known.memory, known.measured)
        now = what_if.current_inputs(known.counters, known.inputs().values)
        one = (float(label["value"]), launch["duration_ns"] * 1e-9, known.counters, machine, now)
        families.setdefault((label["kernel"], label["axis"]), []).append(one)
    engine.dispose()
    return families


def asked(one, axis, values):
    _, _, counters, machine, now = one
    assert loaded_launch.missing_inputs(now) == []
    scenarios = [{AXES[axis]: value} for value in values]
    parts = loaded_launch.split_launch(counters, now)
    return loaded_launch.predict_times(parts, now, what_if.scenario_inputs(counters, now, machine, scenarios))


def errors(steps, apart):
    """Relative errors of the predicted times of launches ``apart`` steps away, by kernel, axis, from and to."""
    found = {}
    for (kernel, axis), launches in steps.items():
        for place, one in enumerate(launches):
            others = [other for other in range(len(launches)) if other != place and abs(other - place) <= apart]
            times = asked(one, axis, [launches[other][0] for other in others]).time_s[1:]
            for other, time in zip(others, times, strict=True):
                found[kernel, axis, one[0], launches[other][0]] = time / launches[other][1] - 1
    return found


def test_each_step_of_a_sweep_is_predicted_out_of_the_step_beside_it(steps):
    found = errors(steps, 1)
    assert len(found) == 170
    assert {key: round(error, 3) for key, error in found.items() if abs(error) > WITHIN} == {}
    assert np.median(np.abs(list(found.values()))) < 0.02


def test_steps_far_away_are_predicted_within_a_quarter(steps):
    found = np.abs(list(errors(steps, 99).values()))
    assert len(found) == 712
    assert (np.median(found) < 0.03, np.quantile(found, 0.9) < WITHIN, found.max() < 0.25) == (True, True, True)


def test_a_launch_as_it_is_takes_its_measured_time_within_its_range(steps):
    for (_, axis), launches in steps.items():
        for one in launches:
            said = asked(one, axis, [one[0]])
            np.testing.assert_allclose(said.time_s, one[1], rtol=1e-6)
            assert (said.low_s <= said.time_s * (1 + 1e-9)).all()
            assert (said.time_s <= said.high_s * (1 + 1e-9)).all()


def test_no_answer_is_beyond_the_peak(steps):
    for launches in steps.values():
        for _, _, counters, machine, now in launches:
            scenarios = [{"warps": 64.0}, {"warps": 4096.0}, {"sms": 1000.0}, {"frequency_hz": 1e10},
                         {"bandwidth_bytes_per_s": 1e14}, {"blocks": 1e6}]  # fmt: skip
            values = what_if.scenario_inputs(counters, now, machine, scenarios)
            said = loaded_launch.predict_times(loaded_launch.split_launch(counters, now), now, values)
            assert (said.low_s >= said.peak_s * (1 - 1e-9)).all()
            assert (said.time_s >= said.low_s * (1 - 1e-9)).all()


@pytest.mark.parametrize("axis", ["warps", "sms", "frequency_hz", "bandwidth_bytes_per_s"])
def test_more_is_never_slower(steps, axis):
    for launches in steps.values():
        for _, _, counters, machine, now in launches:
            own = float(now[what_if.AXES[axis]][0])
            more = (
                [own * share for share in (0.25, 0.5, 0.75, 1.0, 2.0)] if axis != "warps" else [1, 2, 4, 8, 16, 32, 64]
            )
            scenarios = [{axis: max(1.0, np.floor(value))} for value in more]
            values = what_if.scenario_inputs(counters, now, machine, scenarios)
            said = loaded_launch.predict_times(loaded_launch.split_launch(counters, now), now, values)
            assert (np.diff(said.time_s[1:]) <= 1e-6 * said.time_s[0]).all()


def test_few_warps_of_arithmetic_are_limited_by_latency_and_many_by_issue_slots(steps):
    few, many = (next(one for one in steps["fma_chain<1>", "warps"] if one[0] == warps) for warps in (2.0, 64.0))
    assert asked(few, "warps", [2.0]).bound[0] == "latency"
    assert asked(many, "warps", [64.0]).bound[0] == "issue"
    # A multiply-add takes 4.06 cycles; the loop around 16 of them is part of the mean.
    assert float(few[4]["inst_latency"][0]) == pytest.approx(4.06, rel=0.1)
