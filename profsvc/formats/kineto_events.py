"""The kinds of events in a trace of PyTorch's profiler, and what their names and arguments mean."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from profsvc.errors import BrokenInputError
from profsvc.formats.json_stream import clean
from profsvc.formats.kineto_xla import METRICS as XLA_METRICS
from profsvc.formats.nsys import copy_kind

LARGEST = 2**63 - 1
# Microseconds since 1970 reach this in the year 5138; nanoseconds passed it in 1973.
MOST_MICROSECONDS = 10**17
DEVICE = {
    "kernel": "kernel",
    "mtia_ccp_events": "kernel",  # a newer name of the same
    "gpu_memcpy": "copy",
    "memcpy": "copy",
    "gpu_memset": "set",
    "memset": "set",
}
_MAKERS = ("cuda", "hip", "xpu", "mtia", "glow", "privateuse1")
HOST = {
    "hpu_op": "call",
    **dict.fromkeys(["runtime", *(f"{maker}_{part}" for maker in _MAKERS for part in ("runtime", "driver"))], "call"),
    **dict.fromkeys(("cpu_op", "operator", "user_annotation"), "range"),
}
COUNTERS = "cuda_profiler_range"
"""The category of what CUPTI counted; its times are none: the tool shares those of the profile out evenly."""
KINDS: Mapping[str, str] = {**DEVICE, **HOST}
# Categories that say nothing that is kept, beside those whose names hold a word of the second list.
_PASSED = frozenset(
    {
        *("", "none", "trace", "gpu_user_annotation", "python_function", "ac2g", "fwdbwd", "overhead"),
        *("async_cpu_to_gpu", "async_gpu", "forward_backward", "cpu_instant_event", "external_correlation"),
        *("cuda_event",),
    }
)
_PASSED_WORDS = ("sync", "flow")
METRICS = {
    "registers per thread": ("register/thread", 1),
    "shared memory": ("byte/block", 1),
    "blocks per SM": ("block", 1),
    "warps per SM": ("warp", 1),
    "est. achieved occupancy %": ("1", 100),
}
_COPY = re.compile(r"(?:Memcpy|Memset)(?: (?P<kind>\w+))? ?\((?P<source>[^()]*?)(?: -> (?P<target>[^()]*))?\)")
_COPY_ROCM = re.compile(r"Copy(Host|Device|Peer)To(Host|Device|Peer)")

_PERCENT = re.compile(r"\.pct(?:_|\b)|_pct\b")
_PLAIN = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,12})?")


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


def is_passed(category: object) -> bool:
    """Tell whether nothing is lost by an event of a category that is skipped.

    >>> is_passed("cuda_sync"), is_passed("Python function"), is_passed("gcu_kernel")
    (True, True, False)
    """
    words = str(category or "").lower().replace(" ", "_")
    return words in _PASSED or any(word in words for word in _PASSED_WORDS)


def whole(value: object) -> int | None:
    """Return a whole number that a database can hold; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST else None


class Event:
    """One event; a value of a wrong kind raises `ValueError`."""

    def __init__(self, values: Mapping[str, object], base: int) -> None:
        """Take what the file says of it; ``base`` is added to its start, in ns."""
        args = values.get("args")
        self.values, self.base = values, base
        self.args: Mapping[str, object] = args if isinstance(args, dict) else {}

    def number(self, name: str) -> Decimal:
        """Return a number of microseconds."""
        value = self.values.get(name)
        if isinstance(value, str) and _PLAIN.fullmatch(value):
            value = Decimal(value)
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            raise ValueError(f"{name} is {str(value)[:40]!r}, not a number" if name in self.values else f"no {name}")
        if not -MOST_MICROSECONDS < value < MOST_MICROSECONDS:
            if name == "ts":
                raise BrokenInputError(
                    f"ts is {str(value)[:40]}, too much for microseconds since 1970, which this format counts in; "
                    "write the trace again without changing its times"
                )
            raise ValueError(f"{name} is {str(value)[:40]}, out of range")
        return Decimal(value)

    def span(self) -> dict[str, object]:
        """Return start and duration."""
        start, duration = self.number("ts"), self.number("dur")
        if duration < 0:
            raise ValueError("dur is negative")
        begin = round(start * 1000) + self.base
        if abs(begin) > LARGEST:
            raise ValueError("it begins out of range")
        return {"start_ns": begin, "duration_ns": float(duration * 1000)}

    def name(self) -> str:
        """Return its name, which it must have."""
        name = self.values.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError("the event has no name")
        return clean(name)

    def whole(self, *names: str) -> int | None:
        """Return the first of the arguments that is a whole number in range."""
        for name in names:
            if (value := whole(self.args.get(name))) is not None:
                return value
        return None

    def own(self, name: str) -> int | None:
        """Return a whole number that stands beside the arguments."""
        return whole(self.values.get(name))

    def shape(self) -> dict[str, object]:
        """Return the sizes of grid and block, where there are three."""
        found: dict[str, object] = {}
        for part in ("grid", "block"):
            sizes = self.args.get(part)
            for place, axis in enumerate("xyz"):
                number = whole(sizes[place]) if isinstance(sizes, list) and len(sizes) == 3 else None
                found[f"{part}_{axis}"] = number if number is not None and number >= 0 else None
        return found


def metrics_of(event: Event) -> Iterator[dict[str, object]]:
    """Yield the arguments of a kernel that are metrics."""
    for name, (unit, divisor) in (METRICS | XLA_METRICS).items():
        value = event.args.get(name)
        if isinstance(value, int | Decimal) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST:
            number = float(value) / divisor
            yield {"metric": f"args:'{name}'", "raw_text": str(value), "value": number, "si_unit": unit}


def counters_of(event: Event) -> list[dict[str, object]]:
    """Return the arguments of an event that are counters of CUPTI."""
    found: list[dict[str, object]] = []
    for name, value in event.args.items():
        if isinstance(value, int | Decimal) and not isinstance(value, bool) and "__" in name:
            unit = {"unit": "%", "si_unit": "1"} if _PERCENT.search(name) else {}
            found.append({"metric": name, "raw_text": str(value), "value": float(value) / (100 if unit else 1), **unit})
    return found
