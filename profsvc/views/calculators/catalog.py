"""All calculators by name."""

from collections.abc import Mapping
from types import MappingProxyType

from profsvc.errors import NotFoundError
from profsvc.views.calculators.declaration import Calculator
from profsvc.views.calculators.performance import work_depth

MODULES = (work_depth,)
"""Each has its `CALCULATORS`; one line per module, so that two can be added at a time."""
CALCULATORS: Mapping[str, Calculator] = MappingProxyType(
    {one.key: one for module in MODULES for one in module.CALCULATORS}
)
GROUPS: Mapping[str, str] = MappingProxyType({})
"""The first word of commands of two words, and what these are about."""


def calculator_of(name: str) -> Calculator:
    """Return the calculator of a name in a path."""
    if name not in CALCULATORS:
        raise NotFoundError.near("model", name, CALCULATORS)
    return CALCULATORS[name]
