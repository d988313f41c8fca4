"""timing.toml: what the timing model takes, the memory of the devices it was fitted on, its benchmarks."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from profsvc.errors import DomainError, NotFoundError
from profsvc.specs.hardware import devices
from profsvc.specs.published.references import references
from profsvc.specs.table_files import text_of

FILE = "models/timing.toml"
# Source of what was measured for this table and is printed nowhere.
MEASURED = "measured"
Table = Mapping[str, Any]
# Keys of each entry beside its source: those it must have, and those it may lack.
KEYS: Mapping[str, tuple[set[str], set[str]]] = {
    "parameter": ({"name", "symbol", "meaning", "unit", "obtained_from"}, set()),
    "memory": (
        {"device", "Mem_LD", "dep_uncoal", "dep_coal", "coal_per_mw"},
        {"uncoal_per_mw", "Gamma", "constant_word", "same_address_rate", "store_departure", "l2_sustained"},
    ),
    "instruction": ({"name", "m_factor_measured"}, {"ops_per_cycle", "m_factor"}),
    "microbenchmark": ({"name", "mem_per_loop", "comp_per_loop", "float_per_loop"}, set()),
    "benchmark": (
        {
            "name",
            "input_size",
            "comp_min",
            "comp_max",
            "registers_per_thread",
            "shared_bytes_per_block",
            "comp_per_mem",
        },
        set(),
    ),
    "cores": (
        {"name", "printed", "earlier_l1", "later_l1", "earlier_dram", "later_dram"},
        {"later_all_dram"},
    ),
    "machine": (
        {
            "name",
            "frequency_hz",
            "dram_latency_cycles",
            "cores",
            "float_units_per_core",
            "bandwidth_bytes_per_s",
            "printed",
        },
        set(),
    ),
    "peak": ({"device", "printed_flop_per_s", "flop_per_lane"}, set()),
}
TEXT_KEYS = {"name", "symbol", "meaning", "unit", "obtained_from", "device", "printed", "source", "input_size"}


@dataclass(frozen=True)
class MemoryParameters:
    """Memory of a device as the timing models take it [cycles]; None where the access pattern decides, or not known.

    ``Gamma`` is the constant of synchronization [1]; ``constant_word`` are the cycles of an SM for a word of constant
    memory, ``store_departure`` those for a store that fills no line; ``same_address_rate`` counts atomics [1/s],
    ``l2_sustained`` bytes that L2 serves [B/s].
    """

    device: str
    Mem_LD: float
    dep_uncoal: float
    dep_coal: float
    coal_per_mw: float
    source: str
    uncoal_per_mw: float | None = None
    Gamma: float | None = None
    constant_word: float | None = None
    same_address_rate: float | None = None
    store_departure: float | None = None
    l2_sustained: float | None = None


def read_timing(text: str | None = None) -> Mapping[str, Sequence[Table]]:
    """Read ``timing.toml``: a list of entries for each of ``KEYS``."""
    domain = tomllib.loads(text_of(FILE) if text is None else text)
    if set(domain) != set(KEYS):
        raise DomainError(f"{FILE}: needs exactly the tables {sorted(KEYS)} but has {sorted(domain)}")
    for kind, entries in domain.items():
        _check_names(kind, entries)
        for entry in entries:
            _check_entry(kind, entry)
    return MappingProxyType(domain)


def _check_names(kind: str, entries: Sequence[Table]) -> None:
    names = [_name(entry) for entry in entries]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DomainError(f"{FILE} {kind}: {twice} stand more than once")


def _name(entry: Table) -> str:
    return str(entry.get("name", entry.get("device")))


def _check_entry(kind: str, entry: Table) -> None:
    where = f"{FILE} {kind} {_name(entry)!r}"
    required, optional = KEYS[kind]
    required = required | {"source"}
    if required - set(entry) or set(entry) - required - optional:
        raise DomainError(f"{where}: needs {sorted(required)}, may have {sorted(optional)}, but has {sorted(entry)}")
    if (reference := entry["source"].split(",")[0]) not in {*references(), MEASURED}:
        raise DomainError(f"{where}: no reference {reference!r}")
    if "device" in entry and entry["device"] not in devices():
        raise DomainError(f"{where}: no such device in the catalogue")
    for key in set(entry) - TEXT_KEYS:
        if isinstance(entry[key], bool) or not isinstance(entry[key], int | float) or entry[key] < 0:
            raise DomainError(f"{where}: {key} must be a number of 0 or more but is {entry[key]!r}")


@cache
def timing() -> Mapping[str, Sequence[Table]]:
    """Return the tables of the timing model.

    >>> [row["name"] for row in timing()["instruction"] if row["m_factor_measured"] > 30]
    ['modulo']
    """
    return read_timing()


def memory_parameters(device: str) -> MemoryParameters:
    """Return the memory parameters of a device by its key in the catalogue of devices.

    >>> memory_parameters("GTX280").Mem_LD
    450
    """
    known = {entry["device"]: entry for entry in timing()["memory"]}
    if device not in known:
        raise NotFoundError.near("device with memory parameters", device, known)
    return MemoryParameters(**known[device])


def memory_table(device: str | None) -> dict[str, float]:
    """Return what is known of the memory of a device, by the names of `MemoryParameters`; nothing of most.

    >>> memory_table("GTX280")["Mem_LD"], memory_table("T4"), memory_table(None)
    (450, {}, {})
    """
    entry = next((entry for entry in timing()["memory"] if entry["device"] == device), {})
    return {name: value for name, value in entry.items() if name not in TEXT_KEYS}
