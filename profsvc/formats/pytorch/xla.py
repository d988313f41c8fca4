"""Converts XLA trace events (JAX, TensorFlow) to events of PyTorch; XLA puts all details into one string."""

import re
from collections.abc import Mapping
from decimal import Decimal

# Argument with the details -> category of the event in PyTorch.
_KINDS = {
    "kernel_details": "kernel",
    "memcpy_details": "gpu_memcpy",
    "Memset_details": "gpu_memset",
    "memset_details": "gpu_memset",
}
_ARGUMENT_NAMES = {
    "regs": "registers per thread",
    "static_shared": "static_shared",
    "dynamic_shared": "dynamic_shared",
    "group_mem": "group_mem",
    "size": "bytes",
    "occ_pct": "occ_pct",
    "grid": "grid",
    "block": "block",
}
# In addition to the metrics of PyTorch; group_mem of AMD is static and dynamic memory together.
METRICS = {"occ_pct": ("1", 100), "group_mem": ("byte/block", 1)}
_GPU = re.compile(r"/device:GPU:([0-9]{1,9})\b")
_PART = re.compile(r"(\w+):(\S+)")
_COPY = re.compile(r"Memcpy([HDP])2([HDP])")
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")


def gpu_index(values: Mapping[str, object]) -> int | None:
    """Return the device number if the event names a device process; None for any other event."""
    args = values.get("args")
    if values.get("name") != "process_name" or not isinstance(args, dict):
        return None
    match = _GPU.match(str(args.get("name")))
    return int(match[1]) if match else None


def _value(text: str) -> object:
    parts = [(Decimal if "." in part else int)(part) for part in text.split(",") if _NUMBER.fullmatch(part)]
    return parts[0] if len(parts) == 1 else parts or text


def _name(name: object, details: Mapping[str, str]) -> object:
    """Return the name of a copy or memset as PyTorch prints it."""
    if match := _COPY.fullmatch(str(name)):
        ends = f"{details.get('kind_src', '')} -> {details.get('kind_dst', '')}"
        return f"Memcpy {match[1]}to{match[2]} ({ends})"
    return f"Memset ({details['kind']})" if name == "Memset" and "kind" in details else name


def to_kineto_event(values: Mapping[str, object], gpus: Mapping[object, int]) -> dict[str, object] | None:
    """Return an XLA event as PyTorch would write it; None if it is not a device event.

    ``gpus`` are the device numbers by the process of their events.
    """
    args = values.get("args")
    if not isinstance(args, dict) or "cat" in values:
        return None
    key = next((key for key in _KINDS if isinstance(args.get(key), str)), None)
    if key is None:
        return None
    details = dict(_PART.findall(args[key]))
    found = {_ARGUMENT_NAMES[name]: _value(text) for name, text in details.items() if name in _ARGUMENT_NAMES}
    for theirs, ours in (("context_id", "context"), ("correlation_id", "correlation")):
        found[ours] = _value(str(args.get(theirs)).removeprefix("$$"))
    found["device"] = gpus.get(values.get("pid"))
    return {**values, "cat": _KINDS[key], "name": _name(values.get("name"), details), "args": found}
