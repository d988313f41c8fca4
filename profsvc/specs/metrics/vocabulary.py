"""The words: our counters, the labels of a details page, and the units that tools print."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.specs.table_files import ANY, TOOLS, Capability, Row, capability_range, known_tool, rows_of

PREFIXES = "KMGTP"


@dataclass(frozen=True)
class Unit:
    """A unit as a tool prints it: ``value * factor`` is in ``si_unit``."""

    token: str
    factor: float
    si_unit: str
    dimension: str


def _spelled(row: Row) -> list[Unit]:
    """Return the unit of ``row`` and, where its ``prefixes`` give a base (1000 or 1024), its multiples."""
    token, factor, kind = row["token"], row.number("factor"), (row["si_unit"], row["dimension"])
    spelled = [Unit(token, factor, *kind)]
    if row["prefixes"]:
        base = int(row.one_of("prefixes", ("1000", "1024")))
        spelled += [Unit(prefix + token, factor * base**n, *kind) for n, prefix in enumerate(PREFIXES, 1)]
    return spelled


def read_units(text: str | None = None) -> dict[str, dict[str, Unit]]:
    """Read ``units.csv``: tool, then token, then `Unit`."""
    by_tool: dict[str, dict[str, Unit]] = {tool: {} for tool in TOOLS}
    for row in rows_of("metrics/units.csv", ("tool", "token", "dimension", "factor", "si_unit", "prefixes"), text):
        known = by_tool[row.one_of("tool", TOOLS)]
        for unit in _spelled(row):
            if unit.token in known:
                raise row.wrong(f"{unit.token!r} occurs twice for {row['tool']}")
            known[unit.token] = unit
    return by_tool


@cache
def _units() -> dict[str, dict[str, Unit]]:
    return read_units()


def units(tool: str) -> Mapping[str, Unit]:
    """Return the units of ``tool`` by the token it prints.

    Prefixes of nvprof are binary, those of the other tools decimal.

    >>> units("ncu")["Gbyte"].factor, units("nvprof")["GB"].factor
    (1000000000.0, 1073741824.0)
    >>> units("ncu")["usecond"]
    Unit(token='usecond', factor=1e-06, si_unit='s', dimension='time')
    """
    return MappingProxyType(_units()[known_tool(tool)])


@dataclass(frozen=True)
class Counter:
    """One of our quantities; ``better`` says which way it should go for the same work, where that is clear."""

    name: str
    unit: str
    kind: str
    meaning: str
    better: str
    models: tuple[str, ...]


def read_counters(text: str | None = None) -> dict[str, Counter]:
    """Read ``counters.csv``: name, then `Counter`."""
    known: dict[str, Counter] = {}
    for row in rows_of("metrics/counters.csv", ("counter", "unit", "kind", "meaning", "better", "models"), text):
        kind, better = row.one_of("kind", ("number", "text")), row.one_of("better", ("", "lower", "higher"))
        if not re.fullmatch(r"[a-z][a-z0-9_]*", row["counter"]):
            raise row.wrong(f"{row['counter']!r} is not a name; use a-z, 0-9 and _")
        if row["counter"] in known:
            raise row.wrong(f"{row['counter']!r} occurs twice")
        if not row["meaning"] or (kind == "number") != bool(row["unit"]):
            raise row.wrong("a counter needs a meaning, and a number needs a unit (1 if it has none)")
        models = tuple(row["models"].split())
        known[row["counter"]] = Counter(row["counter"], row["unit"], kind, row["meaning"], better, models)
    return known


@cache
def _counters() -> dict[str, Counter]:
    return read_counters()


def counters() -> Mapping[str, Counter]:
    """Return the glossary: every counter by its name.

    >>> counters()["dram_read_bytes"].unit
    'byte'
    """
    return MappingProxyType(_counters())


def read_sections(text: str | None = None) -> dict[str, str]:
    """Read ``sections.csv``: identifier of a section of ncu, then the title that its details page prints."""
    return {row["section"]: row["title"] for row in rows_of("metrics/sections.csv", ("section", "title"), text)}


def read_labels(text: str | None = None) -> list[tuple[str, str, str, Capability, Capability]]:
    """Read ``labels.csv``: section, label, metric, and the capabilities it holds for."""
    found: list[tuple[str, str, str, Capability, Capability]] = []
    ranges: defaultdict[tuple[str, str], list[tuple[Capability, Capability]]] = defaultdict(list)
    for row in rows_of("metrics/labels.csv", ("section", "label", "metric", "min_cc", "max_cc"), text):
        section, label = row["section"], row["label"]
        low, high = row.capability("min_cc", ANY[0]), row.capability("max_cc", ANY[1])
        if any(low <= other_high and other_low <= high for other_low, other_high in ranges[section, label]):
            raise row.wrong(f"{label!r} of {section!r} occurs twice for one compute capability")
        ranges[section, label].append((low, high))
        found.append((section, label, row["metric"], low, high))
    return found


@cache
def labels(compute_capability: str | None = None) -> Mapping[tuple[str, str], str]:
    """Return the metric behind a label of ncu's details page, by (section, label).

    The section may be written as its title or as its identifier: exports use both. Without a capability, only
    labels that mean one metric on every chip are there. Where versions of ncu put different metrics behind a
    label, it is the one of 2025. A label that means different metrics in one section is left out.

    >>> labels("9.0")["Memory Workload Analysis", "Memory Throughput"]
    'dram__bytes.sum.per_second'
    >>> labels("9.0")["SpeedOfLight", "Memory Throughput"]
    'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed'
    """
    titles, wanted = read_sections(), capability_range(compute_capability)
    found = {}
    for section, label, metric, low, high in read_labels():
        if low <= wanted[0] and wanted[1] <= high:
            found[section, label] = metric
            if section in titles:
                found[titles[section], label] = metric
    return MappingProxyType(found)


def metric_of(section: str | None, label: str, compute_capability: str | None = None) -> str:
    """Return the metric behind a stored name of ncu: a label of a details page, or a metric's name as it is.

    A section may carry the body item it stood under, as in ``Section > Item``.

    >>> metric_of("GPU Speed Of Light Throughput > Compute Throughput Breakdown", "SM: Issue Active", "9.0")
    'sm__issue_active.avg.pct_of_peak_sustained_elapsed'
    >>> metric_of(None, "gpu__time_duration.sum")
    'gpu__time_duration.sum'
    """
    if section is None:
        return label
    known = labels(compute_capability)
    return known.get((section, label)) or known.get((section.partition(" > ")[0], label), label)
