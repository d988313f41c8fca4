"""The nine criteria, the units of the joint bound and their hints, what can be measured; a device's figures by name."""

import dataclasses
import tomllib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from profsvc.errors import DomainError
from profsvc.formulas.performance.operations import OPERATIONS
from profsvc.specs.hardware import Device, capabilities, find_device
from profsvc.specs.metrics.vocabulary import counters
from profsvc.specs.published.references import references
from profsvc.specs.table_files import rows_of, text_of

FILE = "criteria.toml"
CRITERION = {"name", "symbol", "title", "level", "formula", "reference", "section", "counters", "hint"}
UNIT = {"name", "title", "kind", "function", "hint"}
CHARACTERIZATION = {"name", "kind", "meaning"}
FUNCTION, COST, FIGURE = "function", "cost", "figure"
MICROBENCHMARKS = "microbenchmarks.csv"
MICROBENCHMARK = ("quantity", "benchmark", "pick", "scale", "unit", "meaning")
PICKS = ("all", "best", "each")
OPTIONAL = {"criterion": {"conditional"}, "characterization": {"most_x"}}
KEYS = {"criterion": CRITERION, "unit": UNIT, "characterization": CHARACTERIZATION}


def read_criteria(text: str | None = None) -> Mapping[str, Any]:
    """Read ``criteria.toml``: what is ``attainable``, ``latency``, and the lists of criteria, units and so on."""
    domain = tomllib.loads(text_of(FILE) if text is None else text)
    if not 0 < domain["attainable"]["near_peak"] <= 1:
        raise DomainError(f"{FILE}: near_peak must lie in (0, 1] but is {domain['attainable']['near_peak']!r}")
    for kind, keys in KEYS.items():
        for entry in domain[kind]:
            if set(entry) - OPTIONAL.get(kind, set()) != keys:
                raise DomainError(f"{FILE} {kind} {entry.get('name')!r}: needs exactly {sorted(keys)}")
    for entry in domain["criterion"]:
        if unknown := [name for name in entry["counters"] if name not in counters()]:
            raise DomainError(f"{FILE} criterion {entry['name']!r}: no such counters: {unknown}")
        if entry["reference"] not in references():
            raise DomainError(f"{FILE} criterion {entry['name']!r}: no reference {entry['reference']!r}")
    _check_characterizations(domain)
    return MappingProxyType(domain)


def _check_characterizations(domain: Mapping[str, Any]) -> None:
    """Raise unless every unit has its function, and every operation of the time shares its cost."""
    kinds: dict[str, str] = {}
    for entry in domain["characterization"]:
        where = f"{FILE} characterization {entry['name']!r}"
        if entry["kind"] not in (FUNCTION, COST):
            raise DomainError(f"{where}: kind must be {FUNCTION} or {COST} but is {entry['kind']!r}")
        if entry["name"] in kinds or ":" in entry["name"]:
            raise DomainError(f"{where}: a name stands once, without a colon")
        kinds[entry["name"]] = entry["kind"]
    for unit in domain["unit"]:
        if kinds.get(unit["function"]) != FUNCTION:
            raise DomainError(f"{FILE} unit {unit['name']!r}: no function {unit['function']!r} among characterizations")
    costs = {name for name, kind in kinds.items() if kind == COST}
    if odd := sorted(costs ^ {f"k_{operation}" for operation in OPERATIONS}):
        raise DomainError(f"{FILE}: costs and operations of the time shares must agree but {odd} differ")


@cache
def criteria() -> Mapping[str, Any]:
    """Return the criteria and units as the analysis and the reports use them.

    >>> [c["symbol"] for c in criteria()["criterion"]]
    ['A', 'B', 'C', 'D', 'E', 'F', 'F', 'G', 'H']
    """
    return read_criteria()


class Microbenchmark(NamedTuple):
    """A quantity and the raw figures behind it: which benchmarks, which points of them, on what scale, in which unit.

    ``pick`` is ``all`` points of a sweep, the ``best`` one, ``each`` as a measurement of one figure, or the one
    ``at:x``. ``scale`` is a scale of
    `profsvc.microbench.rows`, or what the catalogue calls the lanes of the unit. ``meaning`` says how it is measured,
    or what x of a sweep is.
    """

    quantity: str
    benchmarks: tuple[str, ...]
    pick: str
    scale: str
    unit: str
    meaning: str


@cache
def microbenchmarks() -> tuple[Microbenchmark, ...]:
    """Return what is measured.

    >>> next(one for one in microbenchmarks() if one.quantity == "k_dram_load").benchmarks
    ('dram_read',)
    """
    found = []
    for row in rows_of(MICROBENCHMARKS, MICROBENCHMARK):
        if not row["pick"].startswith("at:"):
            row.one_of("pick", PICKS)
        found.append(Microbenchmark(row["quantity"], tuple(row["benchmark"].split()), row["pick"], row["scale"],
                                    row["unit"], row["meaning"]))  # fmt: skip
    return tuple(found)


@cache
def measured_figures() -> dict[str, Microbenchmark]:
    """Return the quantities that are neither a function nor a cost of the criteria: latencies, rates, times.

    >>> measured_figures()["latency_l2"].unit, "k_dram_load" in measured_figures()
    ('cycle', False)
    """
    return {one.quantity: one for one in microbenchmarks() if not one.quantity.startswith(("F_", "k_"))}


@cache
def single_figures() -> tuple[str, ...]:
    """Return the quantities of `measured_figures` that are one figure each, no sweep.

    >>> "latency_l2" in single_figures(), "cost_barrier" in single_figures()
    (True, False)
    """
    return tuple(name for name, one in measured_figures().items() if one.pick != "all")


@cache
def quantities() -> Mapping[str, str]:
    """Return every quantity that a characterization may hold, with its kind: function, cost or figure.

    >>> quantities()["F_ArithThr:fp32"], quantities()["k_dram_load"], quantities()["latency_l2"]
    ('function', 'cost', 'figure')
    """
    kinds = {entry["name"]: str(entry["kind"]) for entry in criteria()["characterization"]}
    own = {f"{unit['function']}:{unit['name']}": FUNCTION for unit in criteria()["unit"]}
    return MappingProxyType({**kinds, **own, **dict.fromkeys(measured_figures(), FIGURE)})


def _fields(known: Device) -> dict[str, object]:
    return {field.name: getattr(known, field.name) for field in dataclasses.fields(known)}


def figures(name: str | None, compute_capability: str | None) -> dict[str, object]:
    """Return what the catalogue knows of a device; of an unknown product only what its compute capability fixes.

    >>> figures("NVIDIA H200", "9.0")["sms"], figures("a new board", "9.0").get("sms")
    (132, None)
    """
    if name is not None and (known := find_device(name)) is not None:
        return _fields(known)
    fixed = capabilities().get(str(compute_capability), {})
    return {key: value for key, value in fixed.items() if key != "source"}
