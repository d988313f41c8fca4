"""Tools other than PyTorch that write traces in the Chrome format: how their events differ from those of Kineto."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from profsvc.formats.parsing.numbers import MAX_INT64

PTI_CATEGORY = "gpu_op"
"""The category of what ran on the device in traces of Intel's PTI, which Kineto does not use."""
PTI = "Intel PTI"
METRICS = {"theoretical achieved occupancy %": ("1", 100)}
"""In addition to the metrics of PyTorch, of PaddlePaddle."""
# Paddle prints the duration behind each name, which would make a kernel of its own of every launch.
_PRINTED_DURATION = re.compile(r"\[[0-9]+\.[0-9]+ [mun]?s\]\Z")
_PADDLE_THREAD = re.compile(r"([0-9]{1,18})\((?:Python|C\+\+)\)")
_PADDLE_RANGES = (
    *("profilestep", "dataloader", "userdefined", "operatorinner", "forward", "backward", "optimization"),
    *("communication", "pythonop", "pythonuserdefined"),
)
_AXES = "xyz"
_WHOLE = re.compile(r"[0-9]{1,18}")
# The name of a kernel of PTI with its groups and their size, and that of a copy or fill with its bytes.
_PTI_KERNEL = re.compile(r"(.*)\[SIMD[0-9A-Z_]+ \{(\d+); (\d+); (\d+)\} \{(\d+); (\d+); (\d+)\}\]")
_PTI_BYTES = re.compile(r"(.*)\[([0-9]{1,18})(?: bytes)?\]")
_PTI_COPY, _PTI_FILL = re.compile(r"\w*Mem(?:ory)?Copy|\w*(?:Read|Write|Copy)Buffer"), re.compile(r"\w*Fill")
_PTI_BARRIER = re.compile(r"zeCommandListAppend(?:Barrier|MemoryRangesBarrier|\w*Event)")


class Tool(NamedTuple):
    """A tool whose events are read one by one; ``kinds`` are those of its own categories, in small letters."""

    name: str
    evidence: re.Pattern[str]
    kinds: Mapping[str, str]
    convert: Callable[[Mapping[str, object]], dict[str, object]]


def _paddle_event(values: Mapping[str, object]) -> dict[str, object]:
    """Return an event of PaddlePaddle without the duration behind its name, and with the number of its thread.

    >>> _paddle_event({"name": "relu[1.250 us]", "args": {"correlation id": 7}})
    {'name': 'relu', 'args': {'correlation id': 7, 'correlation': 7}}
    """
    name, args = values.get("name"), values.get("args")
    found = dict(values)
    if isinstance(name, str):
        found["name"] = _PRINTED_DURATION.sub("", name)
    if thread := _PADDLE_THREAD.fullmatch(str(values.get("tid"))):
        found["tid"] = int(thread[1])
    if isinstance(args, dict) and "correlation id" in args:
        found["args"] = {**args, "correlation": args["correlation id"]}
    return found


def _onnx_event(values: Mapping[str, object]) -> dict[str, object]:
    """Return an event of ONNX Runtime, whose numbers are texts and whose copies are in the category of kernels.

    >>> _onnx_event({"cat": "Kernel", "name": "MemcpyHostToDevice", "args": {"stream": "7", "grid_x": "-1"}})
    {'cat': 'Memcpy', 'name': 'MemcpyHostToDevice', 'args': {'stream': 7}}
    """
    args = values.get("args")
    if values.get("cat") != "Kernel" or not isinstance(args, dict):
        return dict(values)
    numbers = {name: int(text) for name, text in args.items() if isinstance(text, str) and _WHOLE.fullmatch(text)}
    found = {name: numbers[name] for name in ("stream", "correlation") if name in numbers}
    sizes: dict[str, object] = {}
    for part in ("grid", "block"):
        each = [numbers[f"{part}_{axis}"] for axis in _AXES if f"{part}_{axis}" in numbers]
        sizes |= {part: each} if len(each) == len(_AXES) else {}
    is_copy = str(values.get("name")).startswith("Memcpy")
    return {**values, "cat": "Memcpy" if is_copy else "Kernel", "args": found | sizes}


TOOLS = (
    Tool(
        "PaddlePaddle profiler",
        re.compile(r'\A\s*\{[^\[]*"span_indx"\s*:'),
        {
            **dict.fromkeys(("cudaruntime", "mluruntime", "customdeviceruntime"), "call"),
            **dict.fromkeys(_PADDLE_RANGES, "range"),
        },
        _paddle_event,
    ),
    Tool(
        "ONNX Runtime",
        re.compile(r'\A\s*\[\s*\{\s*"cat"\s*:\s*"(?:Session|Node)"\s*,'),
        {"session": "range", "node": "range", "api": "call"},
        _onnx_event,
    ),
)


def tool_of(head: str) -> Tool | None:
    """Return the tool whose trace begins with ``head``; None for Kineto and those that resemble it.

    >>> tool_of('[{"cat" : "Session", "pid" :5').name
    'ONNX Runtime'
    """
    return next((tool for tool in TOOLS if tool.evidence.search(head.lstrip("\ufeff"))), None)


def pti_event(values: Mapping[str, object]) -> dict[str, object] | None:
    """Return an event of Intel's PTI on the device as Kineto would write it; None for a barrier or an event.

    >>> pti_event({"cat": "gpu_op", "name": "GEMM[SIMD32 {4; 2; 1} {256; 1; 1}]"})["args"]
    {'grid': [4, 2, 1], 'block': [256, 1, 1]}
    >>> pti_event({"cat": "gpu_op", "name": "zeCommandListAppendMemoryCopy(M2D)[64 bytes]"})["cat"]
    'memcpy'
    """
    name = str(values.get("name"))
    if _PTI_BARRIER.match(name):
        return None
    args: dict[str, object] = {}
    category = "kernel"
    if match := _PTI_KERNEL.fullmatch(name):
        name, *sizes = match.groups()
        numbers = [min(int(size), MAX_INT64) for size in sizes]
        args = {"grid": numbers[:3], "block": numbers[3:]}
    elif match := _PTI_BYTES.fullmatch(name):
        name, args = match[1], {"bytes": int(match[2])}
    if _PTI_FILL.match(name):
        category = "memset"
    elif _PTI_COPY.match(name):
        category = "memcpy"
    return {**values, "cat": category, "name": name, "args": args}
