"""Power consumers of a device: its units with their MaxPower, and the units that each instruction uses."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.errors import NotFoundError
from profsvc.formulas.numerics.flags import FORMS, check_form
from profsvc.specs.hardware import device as device_of
from profsvc.specs.hardware import devices
from profsvc.specs.published.references import references
from profsvc.specs.table_files import rows_of

COMPONENTS = "power/components.csv"
INSTRUCTIONS = "power/instruction_units.csv"
SCOPES = ("sm", "board")
RESPONSES = ("linear", "special", "constant")


@dataclass(frozen=True)
class Component:
    """A unit that consumes power: one per SM or per board, by its access rate, a curve of it, or constantly."""

    device: str
    name: str
    max_power_w: float
    scope: str
    response: str
    source: str

    @property
    def per_sm(self) -> bool:
        """Whether each SM has one."""
        return self.scope == "sm"

    @property
    def special(self) -> bool:
        """Whether `formulas.power.special_linear` stands in place of the access rate."""
        return self.response == "special"

    @property
    def always_on(self) -> bool:
        """Whether its access rate is 1 as long as a kernel runs."""
        return self.response == "constant"


def read_components(text: str | None = None) -> dict[str, tuple[Component, ...]]:
    """Read ``components.csv``: key of a device, then its units."""
    known: dict[str, dict[str, Component]] = {}
    for row in rows_of(COMPONENTS, ("device", "component", "max_power_w", "scope", "response", "source"), text):
        name, own = row["component"], known.setdefault(row["device"], {})
        if row["device"] not in devices():
            raise row.wrong(f"no device {row['device']!r} in the catalogue")
        if not name or name in own:
            raise row.wrong(f"{name!r} of {row['device']!r} occurs twice" if name else "a component needs a name")
        power = row.number("max_power_w")
        if not (math.isfinite(power) and power >= 0):
            raise row.wrong(f"max_power_w must be a number of watts, not negative, but is {row['max_power_w']!r}")
        key = row["source"].partition("]")[0].removeprefix("[")
        if key not in references():
            raise row.wrong(f"source must begin with a [reference] of references.toml but is {row['source']!r}")
        scope, response = row.one_of("scope", SCOPES), row.one_of("response", RESPONSES)
        own[name] = Component(row["device"], name, power, scope, response, row["source"])
    return {key: tuple(own.values()) for key, own in known.items()}


@cache
def _components() -> dict[str, tuple[Component, ...]]:
    return read_components()


def components(device: str) -> tuple[Component, ...]:
    """Return the units of a device by its product name or key; raise `NotFoundError` if none was published.

    >>> [(c.name, c.max_power_w) for c in components("GTX280") if not c.per_sm]
    [('Global', 52.0), ('Local', 52.0)]
    """
    known = device_of(device)
    if known.key not in _components():
        raise NotFoundError.near("device with a published MaxPower of its units", known.key, _components())
    return _components()[known.key]


def read_instruction_units(text: str | None = None) -> dict[str, dict[str, tuple[str, ...]]]:
    """Read ``instruction_units.csv``: form, then instruction, then the units it touches."""
    names = {component.name for own in _components().values() for component in own}
    known: dict[str, dict[str, tuple[str, ...]]] = {form: {} for form in FORMS}
    for row in rows_of(INSTRUCTIONS, ("instruction", *FORMS), text):
        if not row["instruction"] or row["instruction"] in known[FORMS[0]]:
            raise row.wrong(f"instruction {row['instruction']!r} is empty or there twice")
        for form in FORMS:
            units = tuple(row[form].split())
            if not units or set(units) - names or len(set(units)) < len(units):
                raise row.wrong(f"{form} must name units of {COMPONENTS}, each once, but is {row[form]!r}")
            known[form][row["instruction"]] = units
    return known


@cache
def _instruction_units() -> dict[str, dict[str, tuple[str, ...]]]:
    return read_instruction_units()


def instruction_units(form: str = "consistent") -> Mapping[str, tuple[str, ...]]:
    """Return the units that each PTX instruction touches, as table 7 of [Hong2012] prints them or repaired.

    The print leaves the register file out of fused multiply-adds, lg2, ex2 and stores to shared memory, and counts lg2
    and ex2 as floating-point additions; repaired, all but barriers and branches touch registers, and both are of the
    special function unit.

    >>> instruction_units()["ex2_fp"], instruction_units("as_published")["ex2_fp"]
    (('SFU', 'REG', 'FDS'), ('FP', 'FDS'))
    """
    return MappingProxyType(_instruction_units()[check_form(form)])
