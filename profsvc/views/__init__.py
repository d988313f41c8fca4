"""One function per question, which returns a plain dict. The command line, API and pages show the same dict.

The names are loaded when they are used: the command line reads `calculators` for its help without the analysis.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profsvc.views.catalog import catalogue, devices, reader, readers, titles_and_hints
    from profsvc.views.launches.details import launch
    from profsvc.views.launches.listing import LIMIT, launches_of, why_no_result
    from profsvc.views.runs import SUMMARY, advice_of_run, launch_page, run

_MODULES = {
    "catalog": ("catalogue", "devices", "reader", "readers", "titles_and_hints"),
    "launches.details": ("launch",),
    "launches.listing": ("LIMIT", "launches_of", "why_no_result"),
    "runs": ("SUMMARY", "advice_of_run", "launch_page", "run"),
}
__all__ = [
    "LIMIT", "SUMMARY", "advice_of_run", "catalogue", "devices", "launch", "launch_page", "launches_of", "reader",
    "readers", "run", "titles_and_hints", "why_no_result",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
