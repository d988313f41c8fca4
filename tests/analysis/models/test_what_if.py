"""A launch in other circumstances: what the models say of it, beside what they say of it as it is."""

import numpy as np
import pytest

from profsvc import specs, store
from profsvc.analysis.models import what_if
from profsvc.views.models.launch_models import known_of


@pytest.fixture(scope="module")
def launches(demo):
    """A launch of each kind of the demo: its counters, its machine, its inputs, and the times that are stored."""
    found = {}
    for launch in store.select(demo, "v1_launches"):
        if launch["kernel_short"] in found:
            continue
        known = known_of(demo, launch)
        machine = what_if.Machine(known.figures, known.memory, known.measured)
        rows = store.select(demo, "v1_models", launch_id=launch["launch_id"], quantity="time_ns", form="consistent")
        stored = {row["model"]: row["value"] for row in rows}
        now = what_if.current_inputs(known.counters, known.inputs().values)
        found[launch["kernel_short"]] = (known.counters, machine, now, stored)
    return found


def times(launch, scenarios):
    counters, machine, now, _ = launch
    said = what_if.scenario_answers(what_if.scenario_inputs(counters, now, machine, scenarios))
    return {model: answer.time_ns for model, answer in said.items()}


def test_a_launch_as_it_is_takes_the_time_that_the_analysis_stored(launches):
    checked = 0
    for counters, machine, now, stored in launches.values():
        found = times((counters, machine, now, stored), [])
        for model in what_if.MODELS:
            if stored.get(model) is not None:
                assert found[model].shape == (1,)
                assert found[model][0] == pytest.approx(stored[model], rel=1e-9)
                checked += 1
    assert checked > 20


def test_what_is_changed_to_what_it_is_changes_nothing(launches):
    for launch in launches.values():
        now = launch[2]
        own = {axis: float(now[name][0]) for axis, name in what_if.AXES.items()}
        for found in times(launch, [own, {"sms": own["sms"]}, {}]).values():
            np.testing.assert_allclose(found[1:], found[0], rtol=1e-9)


def test_more_is_never_slower(launches):
    for launch in launches.values():
        now = launch[2]
        for axis in ("sms", "warps", "frequency_hz", "bandwidth_bytes_per_s"):
            own = float(now[what_if.AXES[axis]][0])
            shares = (0.25, 0.5, 0.75, 1.0)
            values = [max(1.0, np.floor(own * share)) if axis in ("sms", "warps") else own * share for share in shares]
            for model, found in times(launch, [{axis: value} for value in values]).items():
                if np.isfinite(found).all() and not (axis == "warps" and model == "mwp_cwp"):
                    assert (np.diff(found[1:]) <= 1e-6 * found[0]).all(), (axis, model)


def test_twice_the_bandwidth_halves_what_it_bounds_and_nothing_else(launches):
    for launch in launches.values():
        counters, machine, now, _ = launch
        double = {"bandwidth_bytes_per_s": 2 * float(now["bandwidth"][0])}
        values = what_if.scenario_inputs(counters, now, machine, [double])
        for answer in what_if.scenario_answers(values).values():
            ratio = answer.time_ns[1] / answer.time_ns[0]
            if np.isfinite(ratio):
                assert 0.5 - 1e-9 <= ratio <= 1 + 1e-9


def test_a_slower_clock_slows_computation_alone(launches):
    for name, (counters, machine, now, _) in launches.items():
        values = what_if.scenario_inputs(counters, now, machine, [{"frequency_hz": float(now["freq"][0]) / 2}])
        for part in what_if.DRAM_TIMES:  # the same time in ns
            assert values[part][1] / values["freq"][1] == pytest.approx(values[part][0] / values["freq"][0]), name
        for answer in what_if.scenario_answers(values).values():
            ratio = answer.time_ns[1] / answer.time_ns[0]
            if np.isfinite(ratio):
                assert 1 - 1e-6 <= ratio <= 2 + 1e-6


def test_half_the_sms_have_half_the_peak_and_more_rounds(launches):
    for counters, machine, now, _ in launches.values():
        half = float(now["sms"][0]) / 2
        values = what_if.scenario_inputs(counters, now, machine, [{"sms": half}])
        blocks = float(now["blocks"][0])
        if blocks >= now["sms"][0]:
            assert values["peak_plain"][1] == pytest.approx(values["peak_plain"][0] / 2)
            assert values["active_sms"].tolist() == [now["sms"][0], half]
        assert values["insts_all"][0] == values["insts_all"][1]


def test_the_device_itself_of_the_catalogue_is_no_other_device(launches):
    """The catalogue's H200 differs from the one measured by its clock alone."""
    for counters, _, now, stored in launches.values():
        figures = specs.figures("NVIDIA H200", "9.0")
        moved = what_if.inputs_on_machine(counters, now, what_if.Machine(figures, specs.memory_table("H200"), {}))
        assert float(moved["sms"][0]) == 132
        for name in ("insts_all", "mem_insts", "threads_per_block", "miss_ratio"):
            np.testing.assert_array_equal(moved[name], now[name])
        clock = float(moved["freq"][0] / now["freq"][0])
        for model, answer in what_if.scenario_answers(moved).items():
            if stored.get(model) is not None:
                ratio = float(answer.time_ns[0]) / stored[model]
                assert min(1 / clock, 0.98) * 0.97 <= ratio <= max(1 / clock, 1.02) * 1.03, model


def test_an_older_device_is_slower_and_keeps_what_is_not_known_of_it(launches):
    a100 = specs.devices()["A100-SXM-80GB"]
    figures = specs.figures(a100.name, a100.compute_capability)
    slower = 0
    for counters, _, now, stored in launches.values():
        moved = what_if.inputs_on_machine(counters, now, what_if.Machine(figures, {}, {}))
        clock = float(moved["freq"][0] / now["freq"][0])
        assert clock == pytest.approx(a100.boost_clock_hz / float(now["freq"][0]))
        assert float(moved["Mem_LD"][0]) == pytest.approx(float(now["Mem_LD"][0]) * clock)
        assert float(moved["avg_inst_lat"][0]) == float(now["avg_inst_lat"][0])
        assert float(moved["bandwidth"][0]) == a100.dram_peak_bytes_per_s
        found = what_if.scenario_answers(moved)["mwp_cwp"].time_ns[0]
        slower += stored.get("mwp_cwp") is not None and found > stored["mwp_cwp"]
    assert slower > len(launches) / 2


def test_suggestions_stay_within_what_there_is(launches):
    seen = set()
    for counters, machine, now, _ in launches.values():
        values = what_if.scenario_inputs(counters, now, machine, [])
        for row in what_if.suggestions(values, what_if.scenario_answers(values)):
            assert 0 < row["value"] <= row["now"] * (1 + 1e-9)
            seen.add((row["what"], row["model"]))
    assert seen == {("sms", "throughput"), ("sms", "mwp_cwp"), ("warps", "throughput"), ("frequency_hz", "throughput")}
