"""How our counters come out of a tool's metrics, by tool and compute capability."""

import graphlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from profsvc.errors import DomainError
from profsvc.specs.metrics.expression import Expression, parse
from profsvc.specs.metrics.vocabulary import counters
from profsvc.specs.table_files import ANY, TOOLS, Capability, Row, capability_range, known_tool, rows_of

CONFIDENCE = ("doc", "code", "derived", "memory")
"""Read in NVIDIA's documentation; name seen in the tool, meaning ours; computed; neither, from memory."""


@dataclass(frozen=True)
class MetricRow:
    """One row of ``metrics.csv``: ``expression`` gives ``counter`` for ``tool`` from ``low`` to ``high``."""

    tool: str
    low: Capability
    high: Capability
    counter: str
    expression: Expression
    confidence: str

    def overlaps(self, low: Capability, high: Capability) -> bool:
        """Whether any capability from ``low`` to ``high`` is covered."""
        return self.low <= high and low <= self.high


def _metric_row(row: Row) -> MetricRow:
    low, high = row.capability("min_cc", ANY[0]), row.capability("max_cc", ANY[1])
    if low > high:
        raise row.wrong("min_cc must not be above max_cc")
    try:
        expression = parse(row["expression"])
    except DomainError as error:
        raise row.wrong(str(error)) from None
    for name in [row["counter"], *(name[1:] for name in expression.names if name.startswith("@"))]:
        if name not in counters():
            raise row.wrong(f"{name!r} is not in counters.csv")
    confidence = row.one_of("confidence", CONFIDENCE)
    return MetricRow(row.one_of("tool", TOOLS), low, high, row["counter"], expression, confidence)


def read_metrics(text: str | None = None) -> dict[str, list[MetricRow]]:
    """Read ``metrics.csv``: tool, then its rows. No two rows of a counter hold for one capability."""
    by_tool: dict[str, list[MetricRow]] = {tool: [] for tool in TOOLS}
    seen: dict[tuple[str, str], list[MetricRow]] = {}
    for row in rows_of(
        "metrics/metrics.csv", ("tool", "min_cc", "max_cc", "counter", "expression", "confidence"), text
    ):
        metric = _metric_row(row)
        others = seen.setdefault((metric.tool, metric.counter), [])
        if any(other.overlaps(metric.low, metric.high) for other in others):
            raise row.wrong(f"{metric.counter!r} has another expression for {metric.tool} and the same capability")
        others.append(metric)
        by_tool[metric.tool].append(metric)
    for tool, rows in by_tool.items():
        _refuse_cycles(tool, rows)
    return by_tool


def _refuse_cycles(tool: str, rows: Iterable[MetricRow]) -> None:
    graph: dict[str, set[str]] = {}
    for row in rows:
        graph.setdefault(row.counter, set()).update(references(row.expression))
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise DomainError(f"metrics.csv: counters of {tool} need each other: {' <- '.join(error.args[1])}") from None


def references(expression: Expression) -> set[str]:
    """Return the counters that ``expression`` refers to with ``@``.

    >>> references(parse("@duration_ns * 1e-9"))
    {'duration_ns'}
    """
    return {name[1:] for name in expression.names if name.startswith("@")}


@cache
def _metrics() -> dict[str, list[MetricRow]]:
    return read_metrics()


@cache
def metrics(tool: str, compute_capability: str | None = None) -> Mapping[str, Expression]:
    """Return the expression of each counter that ``tool`` can give, in the order of ``metrics.csv``.

    Without a capability, counters are left out whose expression depends on it. nsys does not depend on it.

    >>> metrics("ncu", "9.0")["sol_sm_fraction"].text
    'sm__throughput.avg.pct_of_peak_sustained_elapsed'
    """
    rows, (low, high) = _metrics()[known_tool(tool)], capability_range(compute_capability)
    found = [row for row in rows if row.overlaps(low, high)]
    times = Counter(row.counter for row in found)
    return MappingProxyType({row.counter: row.expression for row in found if times[row.counter] == 1})
