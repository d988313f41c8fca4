"""The units whose rates are fitted to the power of a device: which counter is the rate of each."""

from dataclasses import dataclass
from functools import cache

from profsvc.specs.metrics.vocabulary import counters
from profsvc.specs.table_files import rows_of

FILE = "power/power_units.csv"


@dataclass(frozen=True)
class PowerUnit:
    """A unit that consumes power in proportion to its rate; without a counter the rate is always 1."""

    name: str
    counter: str | None
    per_sm: bool
    meaning: str


def read_power_units(text: str | None = None) -> tuple[PowerUnit, ...]:
    """Read ``power_units.csv``; raise `DomainError` for a row that is wrong."""
    units: list[PowerUnit] = []
    for row in rows_of(FILE, ("unit", "counter", "scope", "meaning"), text):
        counter = row["counter"] or None
        if not row["unit"] or row["unit"] in {unit.name for unit in units}:
            raise row.wrong(f"unit must be a new name but is {row['unit']!r}")
        if counter is not None and (counter not in counters() or counters()[counter].unit != "1"):
            raise row.wrong(f"counter must be a share among the counters but is {counter!r}")
        units.append(PowerUnit(row["unit"], counter, row.one_of("scope", ("sm", "board")) == "sm", row["meaning"]))
    return tuple(units)


@cache
def power_units() -> tuple[PowerUnit, ...]:
    """Return the units whose rates are fitted to the power of a device.

    >>> [unit.name for unit in power_units() if not unit.per_sm]
    ['l2', 'dram']
    """
    return read_power_units()
