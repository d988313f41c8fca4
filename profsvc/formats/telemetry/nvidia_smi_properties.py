"""The properties of nvidia-smi --query-gpu: their quantities and units, and which are texts."""

import re
from functools import cache

from profsvc.formats.timeseries.columns import UNKNOWN, Column, si_scale

_HEAD = re.compile(r"([a-z][a-zA-Z0-9_.]*)(?: \[([^\]]*)\])?")

# Pattern of a name (the first match counts), role, quantity, printed unit, whether its numbers are whole.
COLUMNS: tuple[tuple[str, str, str, str, bool], ...] = (
    (r"timestamp|time", "time", "", "", False),
    (r"index", "gpu", "", "", True),
    (r"name|gpu_name", "name", "", "", False),
    (r"uuid|gpu_uuid|pci\.bus_id|gpu_bus_id|serial|gpu_serial", "device", "", "", False),
    (r"(module\.|gpu\.|enforced\.)?power\.((default|min|max)_)?limit", "value", "limit", "W", False),
    (r"(module\.|gpu\.|memory\.)?power\.draw(\.average|\.instant)?", "value", "power", "W", False),
    (r"total_energy_consumption", "value", "energy", "mJ", True),
    (r"temperature\.(gpu\.tlimit|[a-z_.]*limit)", "value", "limit", "C", True),
    (r"temperature\.[a-z_.]+", "value", "temperature", "C", True),
    (r"clocks\.(max|applications|default_applications)\.[a-z]+", "value", "limit", "MHz", True),
    (r"clocks\.(current\.)?(gr|graphics|sm|mem|memory|video)", "value", "clock", "MHz", True),
    (r"clocks_(event|throttle)_reasons_counters\.[a-z_]+", "value", "state", "us", True),
    (r"clocks_(event|throttle)_reasons\.[a-z_]+", "open", "", "", False),
    (r"utilization\.[a-z]+", "value", "utilization", "%", True),
    (r"fan\.speed", "value", "fan", "%", True),
    (r"(protected_)?memory\.(total|reserved|used|free)", "value", "memory", "MiB", True),
    (r"encoder\.stats\.averageLatency", "value", "state", "us", True),
    (r"(driver|vbios)_version|vgpu_[a-z_.]+|compute_cap|pci\.[a-z_]+", "text", "", "", False),
    (r"pstate|count|pcie\.[a-z_.]+|ecc\.[a-zA-Z0-9_.]+|encoder\.stats\.[a-zA-Z]+", "open", "", "", False),
    (r"retired_pages\.[a-z_.]+|remapped_rows\.[a-z_.]+|accounting\.[a-z_]+", "open", "", "", False),
    (r"(persistence|addressing|compute)_mode|display_[a-z]+|mig\.mode\.[a-z]+", "open", "", "", False),
    (r"(gom|gsp|inforom|fabric|c2c|driver_model|dramEncryption|confidential_compute)\.[a-z_.]+", "open", "", "", False),
    (r"power\.management|hostname", "open", "", "", False),
)


@cache
def _rule(name: str) -> tuple[str, str, str, bool] | None:
    return next((rule[1:] for rule in COLUMNS if re.fullmatch(rule[0], name)), None)


def is_property(name: str) -> bool:
    """Tell whether nvidia-smi has a property of that name.

    >>> is_property("power.draw.instant"), is_property("voltage")
    (True, False)
    """
    return _rule(name) is not None


def column_of(cell: str) -> Column:
    """Return the column under a cell of the header.

    >>> column_of("enforced.power.limit [W]")
    Column(name='enforced.power.limit', role='value', quantity='limit', unit='W', token='W', whole=False, note='')
    """
    match = _HEAD.fullmatch(cell)
    name, printed = (match[1], match[2]) if match else (cell, None)
    rule = _rule(name)
    if rule is None:
        found = si_scale(printed) if printed else None
        # A property of a newer driver: the unit is enough to store it, and the cells show whether it is a number.
        return Column(name, "open", UNKNOWN if found else "state", found[1] if found else "1", printed or "")
    role, quantity, unit, whole = rule
    unit = printed or unit
    found = si_scale(unit)
    return Column(name, role, quantity or "state", found[1] if found else "1", unit if found else "", whole)
