"""What `profsvc.formulas` promises of every function, tried on those that work row by row."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from profsvc.formulas.criteria import (
    device_sync,
    divergence,
    granularity,
    load_balance_sm,
    load_balance_sm_printed,
    load_balance_warp,
    load_balance_warp_printed,
    shared_efficiency,
    throughput_occupancy,
)
from profsvc.formulas.numerics.flags import FORMS, Flag
from profsvc.formulas.performance.speedup import (
    amdahl,
    attained_ratio,
    bottleneck_speedup,
    potential_speedup,
    remaining_potential,
)
from profsvc.formulas.power.component_power import access_rate, gpu_power, warps_per_sm
from profsvc.formulas.power.core_count import gating_saving, perf_per_watt
from profsvc.formulas.power.energy import (
    dyn_power,
    efficiency,
    energy,
    energy_delay,
    frequency_efficiency,
    frequency_optimum,
    rate,
)
from profsvc.formulas.power.energy_split import split
from profsvc.formulas.power.leakage import static_power

# Good arguments of each; those after the bar are optional, where NaN is "unknown" and no fault.
CASES: dict[Callable[..., Any], tuple[dict[str, list[float]], dict[str, list[float]]]] = {
    amdahl: ({"p": [0.1, 0.9], "c": [0.5, 0.2]}, {}),
    bottleneck_speedup: ({"u": [0.5, 0.9], "u_other": [0.6, 0.1], "c": [0.5, 0.2]}, {}),
    attained_ratio: ({"achieved": [1.0, 5.0], "peak": [4.0, 5.0], "F": [0.9, 0.5]}, {}),
    remaining_potential: ({"total": [5.8, 3.0], "done": [1.5, 3.3]}, {}),
    potential_speedup: ({"memthr": [0.1, 0.9], "ariththr": [0.2, 0.3]}, {}),
    device_sync: (
        {
            "stall_sync": [0.1, 0.6],
            "tot_active_warps": [50.0, 900.0],
            "max_warps_device": [10.0, 64.0],
            "clk_cycles": [10.0, 70.0],
        },
        {"barriers": [0.0, 7.0]},
    ),
    divergence: (
        {"thread_insts": [20.0, 64.0], "potential": [32.0, 64.0], "F": [0.9, 1.0]},
        {"p": [0.2, 0.5], "block_size": [256.0, 48.0]},
    ),
    load_balance_warp_printed: (
        {
            "active_warps": [20.0, 64.0],
            "active_cycles": [2.0, 4.0],
            "block_size": [256.0, 100.0],
            "blocks_per_sm": [8.0, 2.0],
        },
        {"p": [0.2, 0.5], "grid_blocks": [1.0, 99.0], "sms": [16.0, 4.0]},
    ),
    load_balance_sm_printed: ({"avg_cycles": [20.0, 64.0], "max_cycles": [30.0, 65.0]}, {"clk_cycles": [40.0, 65.0]}),
    granularity: (
        {"transactions": [32.0, 4.0], "requested_bytes": [128.0, 300.0], "line_bytes": [128.0, 128.0]},
        {"share": [0.5, 0.1], "l1_hit_ratio": [0.0, 0.4]},
    ),
    shared_efficiency: ({"ideal": [32.0, 4.0], "actual": [64.0, 4.0], "F": [1.0, 0.9]}, {"share": [0.5, 0.1]}),
    throughput_occupancy: ({"occ": [0.5, 1.0], "memthr": [0.2, 0.7]}, {"ceiling": [1.5, 4.0]}),
    static_power: (
        {"vcc_v": [1.0, 1.2], "transistors": [1e9, 3e9], "k_design": [2.0, 1.5], "leakage_a": [1e-8, 2e-8]},
        {},
    ),
    warps_per_sm: ({"threads_per_block": [256.0, 48.0], "blocks": [960.0, 31.0], "active_sms": [30.0, 16.0]}, {}),
    access_rate: ({"dac": [100.0, 25.0], "warps": [32.0, 8.0], "cycles": [12800.0, 9000.0]}, {}),
    gpu_power: ({"runtime_w": [66.0, 100.0], "idle_w": [27.0, 83.0]}, {}),
    perf_per_watt: ({"work": [1.0, 5.0], "time_s": [2.0, 3.0], "power_w": [100.0, 150.0]}, {}),
    gating_saving: (
        {"active_sms": [20.0, 8.0], "num_sms": [30.0, 16.0], "time_s": [1.1, 2.0], "time_all_s": [1.0, 1.5]},
        {},
    ),
    energy: ({"power_w": [100.0, 150.0], "time_s": [2.0, 3.0]}, {}),
    energy_delay: ({"energy_j": [200.0, 450.0], "time_s": [2.0, 3.0], "exponent": [1.0, 2.0]}, {}),
    efficiency: (
        {"time_base_s": [2.0, 3.0], "power_base_w": [90.0, 80.0], "time_s": [1.0, 4.0], "power_w": [99.0, 70.0]},
        {},
    ),
    rate: ({"cores": [4.0, 8.0], "throughput": [2.0, 3.0], "frequency_hz": [1e9, 2e9], "slowdown": [1.0, 2.0]}, {}),
    dyn_power: ({"cores": [4.0, 8.0], "frequency_hz": [2.0, 3.0], "weight": [0.5, 0.2], "exponent": [3.0, 1.0]}, {}),
    frequency_efficiency: (
        {
            "frequency_hz": [2.0, 3.0],
            "base_hz": [1.0, 2.0],
            "cores": [4.0, 8.0],
            "weight": [0.5, 0.2],
            "idle_w": [10.0, 3.0],
        },
        {},
    ),
    frequency_optimum: ({"cores": [4.0, 8.0], "weight": [0.5, 0.2], "idle_w": [10.0, 3.0]}, {}),
    split: (
        {
            "data": [100.0, 10.0],
            "share": [0.25, 0.75],
            "rate_cpu": [1.0, 2.0],
            "rate_gpu": [3.0, 1.0],
            "dyn_cpu_w": [50.0, 20.0],
            "dyn_gpu_w": [100.0, 300.0],
            "idle_w": [50.0, 60.0],
            "transfer_s": [0.1, 0.0],
            "idle_fraction": [0.5, 1.0],
        },
        {},
    ),
}
WITH_FORM = [f for f in CASES if "form" in inspect.signature(f).parameters]
WITHOUT_PART = {  # results that a missing counter does not touch
    (device_sync, "tot_active_warps"),
    (device_sync, "max_warps_device"),
    (device_sync, "clk_cycles"),
}
names = pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
with_form = pytest.mark.parametrize("function", WITH_FORM, ids=lambda f: f.__name__)


def fields(result: Any) -> dict[str, np.ndarray]:
    named = result._asdict() if hasattr(result, "_asdict") else {"result": result}
    return {name: value for name, value in named.items() if name not in ("application_with_host", "group")}


def arguments(function: Callable[..., Any]) -> dict[str, np.ndarray]:
    required, optional = CASES[function]
    return {name: np.array(values) for name, values in {**required, **optional}.items()}


@names
def test_scalar_is_vector_is_broadcast(function: Callable[..., Any]) -> None:
    given = arguments(function)
    vector = fields(function(**given))
    column = fields(function(**{name: x[:, np.newaxis] for name, x in given.items()}))
    for k in range(2):
        scalar = fields(function(**{name: float(x[k]) for name, x in given.items()}))
        for name, x in scalar.items():
            if x.size:
                assert x.shape == ()
                np.testing.assert_array_equal(x, vector[name][k])
                np.testing.assert_array_equal(x, column[name][k, 0])
    first = next(iter(given))
    against_one = fields(function(**{**given, first: given[first][0]}))
    np.testing.assert_array_equal(
        next(iter(against_one.values()))[1],
        next(iter(fields(function(**{**given, first: given[first][[0, 0]]})).values()))[1],
    )


@names
def test_arguments_stay_as_they_are(function: Callable[..., Any]) -> None:
    given = arguments(function)
    for x in given.values():
        x.flags.writeable = False
    before = {name: x.copy() for name, x in given.items()}
    first = fields(function(**given))
    again = fields(function(**given))
    for name, x in before.items():
        np.testing.assert_array_equal(given[name], x)
    for name, x in first.items():
        assert x.tobytes() == again[name].tobytes()


@names
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1.0])
def test_a_wrong_number_makes_nan_and_leaves_the_next_one_unchanged(function: Callable[..., Any], wrong: float) -> None:
    required, _ = CASES[function]
    good = fields(function(**arguments(function)))
    for name in required:
        given = arguments(function)
        given[name] = given[name].copy()
        given[name][0] = wrong
        if function is device_sync:
            given["barriers"][0] = 1
        got = fields(function(**given))
        headline = got.get("speedup", got.get("value", got.get("result")))
        assert headline is not None
        assert np.isnan(headline[0]), f"{name} = {wrong}"
        if "flags" in got:
            assert got["flags"][0] & Flag.INPUT_SUSPECT
        if "value" in got and (function, name) not in WITHOUT_PART:
            assert np.isnan(got["value"][0])
        for field, x in got.items():
            if x.size:
                np.testing.assert_array_equal(x[1], good[field][1])


@with_form
def test_published_form_survives_anything_and_still_flags(function: Callable[..., Any]) -> None:
    required, _ = CASES[function]
    for name in required:
        for wrong in (np.nan, np.inf, -1.0, 0.0):
            given = arguments(function)
            given[name] = np.array([wrong, given[name][1]])
            if function is potential_speedup:
                given["bound"] = np.array(["memory" if name == "memthr" else "compute"] * 2)  # the one that counts
            flags = function(**given, form="as_published").flags
            assert wrong == 0 or flags[0] & Flag.INPUT_SUSPECT


@with_form
def test_unknown_form(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"no form 'printed'; allowed: 'as_published', 'consistent'"):
        function(**arguments(function), form="printed")


@names
def test_wrong_dtype_and_shape(function: Callable[..., Any]) -> None:
    given = arguments(function)
    first, *_ = given
    with pytest.raises(TypeError, match=f"{first} has dtype"):
        function(**{**given, first: np.array(["1", "2"])})
    with pytest.raises(ValueError, match=rf"do not broadcast.*{first} \(3,\)"):
        function(**{**given, first: np.ones(3)})


@names
def test_integers_and_no_rows(function: Callable[..., Any]) -> None:
    required, _ = CASES[function]
    fields(function(**{name: np.ones(2, dtype=np.uint64) for name in required}))
    for x in fields(function(**{name: [] for name in required})).values():
        assert x.size == 0


@names
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_narrow_integers_do_not_wrap(function: Callable[..., Any], dtype: str) -> None:
    required, optional = CASES[function]
    largest = np.iinfo(dtype).max
    given = {name: np.array([largest, largest // 2 + 1], dtype=dtype) for name in {**required, **optional}}
    narrow = fields(function(**given))
    wide = fields(function(**{name: x.astype(np.float64) for name, x in given.items()}))
    for name, x in narrow.items():
        np.testing.assert_array_equal(x, wide[name], err_msg=name)


@with_form
@pytest.mark.parametrize("form", FORMS)
def test_percent_is_suspected(function: Callable[..., Any], form: str) -> None:
    for share in {"stall_sync", "p", "share", "occ", "memthr"} & set(arguments(function)):
        if share == "p" and form == "as_published":
            continue  # the print does not use it
        given = arguments(function) | {share: np.array([40.0, 0.4])}
        if "barriers" in given:
            given["barriers"] = np.array([np.nan, np.nan])
        if function is potential_speedup:
            given["bound"] = np.array(["memory", "memory"])
        flags = function(**given, form=form).flags
        assert [bool(f & Flag.INPUT_SUSPECT) for f in flags] == [True, False]


@with_form
def test_form_default_is_consistent(function: Callable[..., Any]) -> None:
    given = arguments(function)
    for a, b in zip(function(**given), function(**given, form="consistent"), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("function", [load_balance_warp, load_balance_sm])
def test_one_sm_a_place_on_the_last_axis(function: Callable[..., Any]) -> None:
    cycles = np.array([[100.0, 80.0], [50.0, 50.0], [0.0, 0.0]])
    extra: tuple[Any, ...] = (cycles, np.array([256, 256, 256]), 8) if function is load_balance_warp else ()
    whole = function(cycles * 9 if extra else cycles, *extra)
    assert whole.value.shape == (3,)
    for k in range(2):
        one = function(cycles[k] * 9, cycles[k], 256, 8) if extra else function(cycles[k])
        assert one.value == whole.value[k]
    assert np.isnan(whole.value[2])
    assert whole.flags[2] & Flag.ZERO_DENOM
    with pytest.raises(ValueError, match="at least one SM"):
        function(*[np.zeros((3, 0))] * (2 if extra else 1), *extra[1:])
