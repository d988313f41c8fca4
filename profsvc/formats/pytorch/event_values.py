"""What is asked of the events of a PyTorch trace: the structures that msgspec makes of them, and lists of members."""

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import NoneType
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType

from profsvc.formats.columnar.csv_columns import Codes
from profsvc.formats.columnar.line_blocks import require_plain
from profsvc.formats.pytorch.events import METRICS
from profsvc.tables import CodedTexts

Whole = int | str | None
"""An integer; some events have a text in its place, which stands for none."""
Metric = object
"""An integer, or the bytes of a number with a fraction as it is printed; another kind is irregular."""
Sizes = tuple[int, int, int] | str
T = TypeVar("T", bound=Hashable)

_ABSENT = Raw()
NO_SIZES = (-1, -1, -1)
_METRIC_TYPES = frozenset((int, bytes, NoneType))
_OFTEN_EQUAL = {"name", "cat", "grid", "block", *METRICS}


class Arguments(msgspec.Struct, gc=False):
    """The arguments that are asked for; events with one of those of `UnsetType` are read one by one."""

    device: Whole = None
    context: Whole = None
    stream: Whole = None
    correlation: Whole = None
    bytes: Whole = None
    Bytes: Whole = None
    external_id: Whole = msgspec.field(default=None, name="external id")
    External_id: Whole = msgspec.field(default=None, name="External id")
    registers: Metric = msgspec.field(default=None, name="registers per thread")
    shared_memory: Metric = msgspec.field(default=None, name="shared memory")
    blocks_per_sm: Metric = msgspec.field(default=None, name="blocks per SM")
    warps_per_sm: Metric = msgspec.field(default=None, name="warps per SM")
    occupancy: Metric = msgspec.field(default=None, name="est. achieved occupancy %")
    occupancy_before: Metric = msgspec.field(default=None, name="theoretical occupancy %")
    grid: Sizes = NO_SIZES
    block: Sizes = NO_SIZES
    name: object = None
    # Of PaddlePaddle, XLA and the first rocprof.
    paddle_occupancy: UnsetType = msgspec.field(default=UNSET, name="theoretical achieved occupancy %")
    kernel_details: UnsetType = UNSET
    memcpy_details: UnsetType = UNSET
    Memset_details: UnsetType = UNSET
    memset_details: UnsetType = UNSET
    static_shared: UnsetType = UNSET
    dynamic_shared: UnsetType = UNSET
    group_mem: UnsetType = UNSET
    occ_pct: UnsetType = UNSET
    BeginNs: UnsetType = UNSET


class Event(msgspec.Struct, gc=False):
    """The members of an event that are asked for, but its times."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Whole = None
    tid: Whole = None
    args: Arguments | None = None


class NumericEvent(Event, gc=False):
    """An event with times as numbers, which are exact if they are small and have at most three decimals."""

    ts: int | float | None = None
    dur: int | float | None = None


class PrintedEvent(Event, gc=False):
    """An event with times as they are printed."""

    ts: Raw = _ABSENT
    dur: Raw = _ABSENT


NO_ARGUMENTS = Arguments()


class Coded(Generic[T]):
    """A column of values of which few differ: the distinct ones, and the code of each row."""

    def __init__(self) -> None:
        """Start without a row."""
        self.codes, self._number = array("i"), _Numbers[T]()

    def extend(self, values: Sequence[T]) -> None:
        """Add rows."""
        if values.count(values[0]) == len(values):
            self.codes.extend(array("i", [self._number[values[0]]]) * len(values))
        else:
            self.codes.extend(map(self._number.__getitem__, values))

    @property
    def distinct(self) -> list[T]:
        """Return the distinct values in the order of their codes."""
        return list(self._number)

    def rows(self) -> Codes:
        """Return the code of each row."""
        return np.frombuffer(self.codes, np.int32)

    def texts(self, meaning: Callable[[T], str | None]) -> CodedTexts:
        """Return a column of texts, with ``meaning`` applied once to each distinct value."""
        return CodedTexts.from_meanings(self.rows(), list(map(meaning, self.distinct)))


class _Numbers(dict[T, int]):
    """The number of each key in the order in which they were first asked for."""

    def __missing__(self, key: T) -> int:
        self[key] = number = len(self)
        return number


Values = dict[str, Any]
"""Values of events by member or argument: lists, or `Coded` ones of which few differ."""


def new_values(names: Iterable[str]) -> Values:
    """Return values of no event."""
    return {name: Coded() if name in _OFTEN_EQUAL else [] for name in names}


# A comprehension that names its member takes half the time of an `attrgetter`.


def _host_values(events: list[Any]) -> Values:
    return {
        "ts": [event.ts for event in events],
        "dur": [event.dur for event in events],
        "name": [event.name for event in events],
        "pid": [event.pid for event in events],
        "tid": [event.tid for event in events],
    }


def _device_values(events: list[Any], arguments: list[Arguments]) -> Values:
    return _host_values(events) | {
        "device": [each.device for each in arguments],
        "context": [each.context for each in arguments],
        "stream": [each.stream for each in arguments],
    }


def _metrics(values: list[Metric]) -> list[Metric]:
    """Return values of a metric; a truth value, which equals 0 or 1, must not be taken for a number."""
    require_plain(_METRIC_TYPES.issuperset(map(type, values)))
    return values


def launch_values(events: list[Any], arguments: list[Arguments]) -> Values:
    """Return what launches are made of."""
    return _device_values(events, arguments) | {
        "correlation": [each.correlation for each in arguments],
        "external id": [each.external_id for each in arguments],
        "External id": [each.External_id for each in arguments],
        "grid": [each.grid for each in arguments],
        "block": [each.block for each in arguments],
        "registers per thread": _metrics([each.registers for each in arguments]),
        "shared memory": _metrics([each.shared_memory for each in arguments]),
        "blocks per SM": _metrics([each.blocks_per_sm for each in arguments]),
        "warps per SM": _metrics([each.warps_per_sm for each in arguments]),
        "est. achieved occupancy %": _metrics([each.occupancy for each in arguments]),
        "theoretical occupancy %": _metrics([each.occupancy_before for each in arguments]),
    }


def transfer_values(events: list[Any], arguments: list[Arguments]) -> Values:
    """Return what copies and fills of memory are made of."""
    return _device_values(events, arguments) | {
        "cat": [event.cat for event in events],
        "bytes": [each.bytes for each in arguments],
        "Bytes": [each.Bytes for each in arguments],
    }


def call_values(events: list[Any], arguments: list[Arguments]) -> Values:
    """Return what calls of the host are made of."""
    return _host_values(events) | {"correlation": [each.correlation for each in arguments]}


def range_values(events: list[Any], _: list[Arguments]) -> Values:
    """Return what ranges of the host are made of."""
    return _host_values(events) | {"cat": [event.cat for event in events]}
