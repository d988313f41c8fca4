"""The kinds of events in a trace of PyTorch's profiler, and what their names and arguments mean."""

import re
from collections.abc import Mapping

from profsvc.formats.nsys import copy_kind

LARGEST = 2**63 - 1
# Microseconds since 1970 reach this in the year 5138; nanoseconds passed it in 1973.
MOST_MICROSECONDS = 10**17
DEVICE = {"kernel": "kernel", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "set", "memset": "set"}
_MAKERS = ("cuda", "hip", "xpu", "mtia", "privateuse1")
HOST = {
    **dict.fromkeys(["runtime", *(f"{maker}_{part}" for maker in _MAKERS for part in ("runtime", "driver"))], "call"),
    **dict.fromkeys(("cpu_op", "operator", "user_annotation"), "range"),
}
KINDS: Mapping[str, str] = {**DEVICE, **HOST}
METRICS = {
    "registers per thread": ("register/thread", 1),
    "shared memory": ("byte/block", 1),
    "blocks per SM": ("block", 1),
    "warps per SM": ("warp", 1),
    "est. achieved occupancy %": ("1", 100),
}
_COPY = re.compile(r"(?:Memcpy|Memset)(?: (?P<kind>\w+))? ?\((?P<source>[^()]*?)(?: -> (?P<target>[^()]*))?\)")
_COPY_ROCM = re.compile(r"Copy(Host|Device|Peer)To(Host|Device|Peer)")


def transfer(name: str, is_set: bool) -> dict[str, object]:
    """Return kind and memories of a copy or memset from its name."""
    match = _COPY.match(name)
    if is_set:
        return {"kind": "memset", "target_memory": match["source"] if match else None}
    if rocm := _COPY_ROCM.match(name):
        return {"kind": f"{rocm[1][0]}to{rocm[2][0]}", "source_memory": rocm[1], "target_memory": rocm[2]}
    if match is None:
        return {"kind": copy_kind(name)}
    return {
        "kind": copy_kind(match["kind"] or name),
        "source_memory": match["source"] or None,
        "target_memory": match["target"] or None,
    }
