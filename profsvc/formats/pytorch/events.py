"""Event kinds of PyTorch profiler traces, and the meaning of their names and arguments."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.json_stream import storable_text
from profsvc.formats.parsing.numbers import MAX_INT64
from profsvc.formats.pytorch.other_tools import METRICS as OTHER_METRICS
from profsvc.formats.pytorch.xla import METRICS as XLA_METRICS

# Microseconds since 1970 reach this in the year 5138; nanoseconds passed it in 1973.
MAX_MICROSECONDS = 10**17
DEVICE = {
    "kernel": "kernel",
    "mtia_ccp_events": "kernel",  # a newer name of the same
    "gpu_memcpy": "copy",
    "memcpy": "copy",
    "gpu_memset": "set",
    "memset": "set",
}
_VENDORS = ("cuda", "hip", "xpu", "mtia", "glow", "privateuse1")
HOST = {
    "hpu_op": "call",
    **dict.fromkeys(["runtime", *(f"{maker}_{part}" for maker in _VENDORS for part in ("runtime", "driver"))], "call"),
    **dict.fromkeys(("cpu_op", "operator", "user_annotation"), "range"),
}
COUNTERS = "cuda_profiler_range"
"""The category of CUPTI counters; its times are invalid, because the tool divides the time of the profile evenly."""
KINDS: Mapping[str, str] = {**DEVICE, **HOST}
BEGIN = "B"
"""The phase of an event whose end is an event of its own; such pairs are not read."""
# Categories without stored information; also those with a word of the second list in their name.
_IGNORED = frozenset(
    {
        *("", "none", "trace", "gpu_user_annotation", "python_function", "ac2g", "fwdbwd", "overhead"),
        *("async_cpu_to_gpu", "async_gpu", "forward_backward", "cpu_instant_event", "external_correlation"),
        *("cuda_event",),
    }
)
_IGNORED_WORDS = ("sync", "flow")
METRICS = {
    "registers per thread": ("register/thread", 1),
    "shared memory": ("byte/block", 1),
    "blocks per SM": ("block", 1),
    "warps per SM": ("warp", 1),
    "est. achieved occupancy %": ("1", 100),
    "theoretical occupancy %": ("1", 100),  # as PyTorch 1.8.1 called the same
}
_PERCENT = re.compile(r"\.pct(?:_|\b)|_pct\b")
_PLAIN = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,12})?")


def is_ignored(category: object) -> bool:
    """Return whether events of a category are known to hold nothing to store.

    >>> is_ignored("cuda_sync"), is_ignored("Python function"), is_ignored("gcu_kernel")
    (True, True, False)
    """
    words = str(category or "").lower().replace(" ", "_")
    return words in _IGNORED or any(word in words for word in _IGNORED_WORDS)


def integer(value: object) -> int | None:
    """Return a 64-bit integer; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INT64 else None


class Event:
    """One event; a value of a wrong kind raises `ValueError`."""

    def __init__(self, values: Mapping[str, object], base: int) -> None:
        """Keep the members of the event; ``base`` in ns is added to its start."""
        args = values.get("args")
        self.values, self.base = values, base
        self.args: Mapping[str, object] = args if isinstance(args, dict) else {}

    def number(self, name: str) -> Decimal:
        """Return a number of microseconds."""
        value = self.values.get(name)
        if isinstance(value, str) and _PLAIN.fullmatch(value):
            value = Decimal(value)
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            raise ValueError(f"{name} is {_shown(value)}, not a number" if name in self.values else f"no {name}")
        if not -MAX_MICROSECONDS < value < MAX_MICROSECONDS:
            if name == "ts":
                raise BrokenInputError(
                    f"ts is {str(value)[:40]}, too large for microseconds since 1970, the unit of this format; "
                    "export the trace again without changing its times"
                )
            raise ValueError(f"{name} is {str(value)[:40]}, out of range")
        return Decimal(value)

    def span(self) -> dict[str, object]:
        """Return start and duration."""
        start, duration = self.number("ts"), self.number("dur")
        if duration < 0:
            raise ValueError("dur is negative")
        begin = round(start * 1000) + self.base
        if abs(begin) > MAX_INT64:
            raise ValueError("the start is out of range")
        return {"start_ns": begin, "duration_ns": float(duration * 1000)}

    def name(self) -> str:
        """Return the name; raise `ValueError` if it is missing."""
        name = self.values.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError("the event has no name")
        return storable_text(name)

    def whole(self, *names: str) -> int | None:
        """Return the first argument of ``names`` that is a 64-bit integer."""
        for name in names:
            if (value := integer(self.args.get(name))) is not None:
                return value
        return None

    def own(self, name: str) -> int | None:
        """Return an integer member of the event outside its arguments."""
        return integer(self.values.get(name))

    def shape(self) -> dict[str, object]:
        """Return the sizes of grid and block, if there are three each."""
        found: dict[str, object] = {}
        for part in ("grid", "block"):
            sizes = self.args.get(part)
            for place, axis in enumerate("xyz"):
                number = integer(sizes[place]) if isinstance(sizes, list) and len(sizes) == 3 else None
                found[f"{part}_{axis}"] = number if number is not None and number >= 0 else None
        return found


def _shown(value: object) -> str:
    """Return a value as JSON spells it, shortened; of a list or an object only what it is.

    >>> _shown(True), _shown(None), _shown("1,5"), _shown([1])
    ('true', 'null', "'1,5'", 'a list')
    """
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return (
        {True: "true", False: "false", None: "null"}[value] if isinstance(value, bool | None) else repr(str(value)[:40])
    )


def metric_number(value: object) -> int | Decimal | None:
    """Return the number of a metric; None for anything else, and for numbers beyond 64 bits."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and -MAX_INT64 <= value <= MAX_INT64:
        return value
    return None


def metrics_of(event: Event) -> Iterator[dict[str, object]]:
    """Yield the arguments of a kernel that are metrics."""
    for name, (unit, divisor) in (METRICS | XLA_METRICS | OTHER_METRICS).items():
        if (value := metric_number(event.args.get(name))) is not None:
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
