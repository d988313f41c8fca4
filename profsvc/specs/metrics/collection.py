"""Which option of a profiler collects what a counter is computed from."""

from collections.abc import Container, Mapping
from functools import cache

from profsvc.specs.criteria import criteria, figures
from profsvc.specs.metrics.expression import Alternative
from profsvc.specs.metrics.mapping import metrics
from profsvc.specs.metrics.vocabulary import read_labels
from profsvc.specs.table_files import capability_range

# Nsight Compute prints these on every raw page, whatever was asked for.
_ON_EVERY_RAW_PAGE = ("device__attribute_", "launch__")
# What collects all that criteria need, of launches of which a tool gave only the times.
_COLLECT_ALL = {
    "nvprof": "to collect them, run: nvprof --print-gpu-trace --metrics all",
    "rocprof": "criteria need metrics of NVIDIA's profilers",
    "proton": "criteria need metrics of NVIDIA's profilers: ncu --set full",
}
# How names of devices of which Nsight Compute knows nothing begin.
_OTHER_VENDORS = ("amd", "intel", "radeon", "instinct", "gfx")
_COLLECT_ALL_NCU = "to collect them, run: ncu --set full"
MIN_NCU_CAPABILITY = (7, 0)


def _leaves(alternative: Alternative, tool: str, capability: str | None) -> list[str] | None:
    """Return the tool's own names behind ``alternative``; None if they come from no option of the tool."""
    known, found = metrics(tool, capability), []
    for name in alternative.names:
        if name.startswith("@"):
            if (expression := known.get(name[1:])) is None:
                return None
            behind = _leaves(expression.alternatives[0], tool, capability)
            if behind is None:
                return None
            found += behind
        elif "'" in name or name.startswith("sql:"):
            return None
        else:
            found.append(name.partition("[")[0])
    return list(dict.fromkeys(found))


@cache
def _sections(capability: str | None) -> Mapping[str, set[str]]:
    """Return the metrics of every section on devices of ``capability``."""
    low, high = capability_range(capability)
    sections: dict[str, set[str]] = {}
    for section, _, metric, first, last in read_labels():
        if first <= low and high <= last:
            sections.setdefault(section, set()).add(metric)
    return sections


def _section_with(names: list[str], capability: str | None) -> str | None:
    return next((section for section, held in _sections(capability).items() if held.issuperset(names)), None)


def _option(tool: str, names: list[str], capability: str | None) -> str:
    if tool == "nvprof":
        kinds: Mapping[str, list[str]] = {
            "--metrics": [name for name in names if not name.startswith("event:")],
            "--events": [name.removeprefix("event:") for name in names if name.startswith("event:")],
        }
        return "nvprof " + " ".join(f"{option} {','.join(asked)}" for option, asked in kinds.items() if asked)
    asked = [name for name in names if not name.startswith(_ON_EVERY_RAW_PAGE)]
    if not asked:
        return "ncu --page raw"
    section = _section_with(asked, capability)
    return f"ncu --section {section}" if section else f"ncu --metrics {','.join(asked)}"


def how_to_collect(tool: str, counter: str, capability: str | None, known: Container[str] = ()) -> str | None:
    """Return the option of ``tool`` that collects what ``counter`` still needs; None where no option does.

    ``known`` are the tool's names that the export has already; None too where they are enough for one way of several,
    as then the value is missing for another reason. Else the way counts that asks for the fewest names.

    >>> how_to_collect("ncu", "sol_sm_fraction", "9.0")
    'ncu --section SpeedOfLight'
    >>> how_to_collect("ncu", "sm_count", "9.0"), how_to_collect("nsys", "duration_ns", None)
    ('ncu --page raw', None)
    """
    if (expression := metrics(tool, capability).get(counter)) is None:
        return None
    if tool == "nvprof" and all(name.startswith("trace:") for name in expression.alternatives[0].names):
        return "nvprof --print-gpu-trace"
    ways = [_leaves(alternative, tool, capability) for alternative in expression.alternatives]
    needed = [[name for name in way if name not in known] for way in ways if way]
    if tool not in ("ncu", "nvprof") or not needed or not all(needed):
        return None
    cheapest = min(needed, key=lambda way: sum(not name.startswith(_ON_EVERY_RAW_PAGE) for name in way))
    return _option(tool, cheapest, capability)


def how_to_measure(tool: str, device: str | None = None) -> str:
    """Return how to collect all that criteria need, for launches of which ``tool`` gave only the times.

    What Nsight Compute does not know, devices before compute capability 7.0, is for nvprof.

    >>> how_to_measure("nvprof"), how_to_measure("kineto")
    ('to collect them, run: nvprof --print-gpu-trace --metrics all', 'to collect them, run: ncu --set full')
    >>> how_to_measure("nsys", "Tesla P100-SXM2-16GB")
    'to collect them, run: nvprof --print-gpu-trace --metrics all'
    >>> how_to_measure("kineto", "AMD Instinct MI300X")
    "criteria need metrics of NVIDIA's profilers"
    """
    if device and device.lower().startswith(_OTHER_VENDORS):
        return _COLLECT_ALL["rocprof"]
    version = figures(device, None).get("compute_capability")
    if isinstance(version, str) and capability_range(version)[0] < MIN_NCU_CAPABILITY and tool not in _COLLECT_ALL:
        return _COLLECT_ALL["nvprof"]
    return _COLLECT_ALL.get(tool, _COLLECT_ALL_NCU)


@cache
def feeds_criteria(tool: str) -> bool:
    """Tell whether a tool has metrics that a criterion of a launch is computed from; a mere tracer has none.

    >>> [feeds_criteria(tool) for tool in ("ncu", "nvprof", "nsys", "kineto")]
    [True, True, False, False]
    """
    needed = {c for entry in criteria()["criterion"] if entry["level"] == "launch" for c in entry["counters"]}
    return not needed.isdisjoint(metrics(tool))
