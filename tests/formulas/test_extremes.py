"""Power and energy formulas take any numbers without an exception or a warning, which the tests turn into one."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from profsvc.formulas.power import (
    active_sms,
    component_power,
    core_count,
    energy,
    energy_split,
    leakage,
    max_power,
    unit_choice,
)

NUMBERS = np.array([0, 1, -1, np.nan, np.inf, -np.inf, 1e300, 1e-300, 0.5, 2, 3, 4, 13, 14, 15, 16, 30])
WORDS: dict[str, tuple[Any, ...]] = {
    "form": ("consistent", "as_published"),
    "rates_of": ("device", "sm"),
    "law": ("log", "linear"),
    "objective": ("energy", "time", "edp", "ed2p"),
}
# Of a sweep or a fit there is one each.
ONE = {("idle_w", active_sms), ("num_sms", active_sms), ("max_sm_w", active_sms), ("num_sms", unit_choice),
       ("beta", unit_choice)}  # fmt: skip
BY_UNIT = {
    "access": (4, 3), "access_rate": (4, 3), "counts": (4, 3), "touches": (3, 3), "special": (3,), "per_sm": (3,),
    "rates": (4, 3), "max_power_w": (3,), "scaling": (3,), "non_gated_w": (3,),
}  # fmt: skip
SWITCHES = {"touches", "special", "per_sm"}
SWITCH = {"base"}
WITH_UNITS = {component_power.__name__, max_power.__name__, unit_choice.__name__}
FUNCTIONS = [
    function
    for module in (active_sms, core_count, energy, energy_split, leakage, max_power, component_power, unit_choice)
    for _, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__ and not function.__name__.startswith("_")
]
FUNCTIONS.remove(active_sms.predict_active_sms)


def some(function: Callable[..., Any], name: str, rng: np.random.Generator) -> Any:
    if name in WORDS:
        return str(rng.choice(WORDS[name]))
    if name in SWITCHES:
        return rng.random(BY_UNIT[name]) > 0.5
    if name in SWITCH:
        return bool(rng.random() > 0.5)
    if (name, function.__module__) in {(argument, module.__name__) for argument, module in ONE}:
        return float(rng.choice(NUMBERS))
    shape = BY_UNIT.get(name, (4,)) if function.__module__ in WITH_UNITS else (4,)
    return rng.choice(NUMBERS, shape)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_any_numbers(function: Callable[..., Any]) -> None:
    rng = np.random.default_rng(17)
    for _ in range(40):
        result = function(**{name: some(function, name, rng) for name in inspect.signature(function).parameters})
        assert np.asarray(result.flags).dtype == np.uint32


def test_any_sweep_can_be_asked() -> None:
    rng = np.random.default_rng(18)
    for _ in range(25):
        n = rng.choice([1.0, 2, 3, 12, 13, 14, 15, 16], 7)
        power_w = rng.choice(NUMBERS, 7) if rng.random() < 0.5 else rng.uniform(0, 500, 7)
        fit = active_sms.fit_active_sms(n, power_w, 16, 20.0)
        for law in (None, *active_sms.LAWS):
            assert active_sms.predict_active_sms(fit, NUMBERS, law).power_w.shape == NUMBERS.shape
