"""Pack readings that follow each other into a list of whole numbers, from which each comes back bit for bit.

A reading is one number, ``beyond * radix + above``. Its value is ``(least + above) / divisor``, and its time is
``first_ns + (place * rise / (readings - 1) + beyond) * unit_ns``, in integers that are rounded towards zero: by how
many units it lies beyond a straight line from the first to the last. A reading of a steady log has ``beyond`` 0.
`profsvc.store.schema.contents.sensors` has the same as SQL, for which the list is a JSON array: the functions for it
are built into both databases, and they read a number of a list as fast as a row.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_READINGS = 4096
"""Readings of a block: a question for few of them reads at least one block."""
MIN_READINGS = 64
"""Fewer readings stay rows, since the other columns of a block take the space of some rows."""
DECIMAL_DIVISORS = tuple(10.0**digits for digits in range(23))
"""The powers of ten that are exact doubles: a decimal number divided by one is the double nearest to it."""
FIRST_READINGS = 32
MAX_WHOLE = 1 << 61
MAX_NUMBER = 1 << 62
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Packed = dict[str, Any]
"""The columns of a packed block in ``sample_blocks``."""


def pack(elapsed_ns: Ints | None, value: Floats, divisor: float = 1.0) -> Packed | None:
    """Return the columns of a block of two readings or more, None if it cannot be packed so that it comes back.

    ``elapsed_ns`` is None if no reading has a time. Values are all plain numbers, or all NaN. ``divisor`` is the first
    that is tried.

    >>> packed = pack(np.array([0, 20, 41, 60]), np.array([60.5, 61.0, 60.25, 60.5]))
    >>> packed["readings"], packed["radix"], packed["least"], packed["divisor"], packed["rise"], packed["unit_ns"]
    ('[25,75,76,25]', 76, 6025, 100.0, 60, 1)
    """
    values, times = _pack_values(value, divisor), _pack_times(elapsed_ns, len(value))
    if values is None or times is None:
        return None
    (scale, above), (line, beyond) = values, times
    radix = int(above.max()) + 1
    if (int(beyond.max()) + 1) * radix > MAX_NUMBER:
        return None
    numbers = beyond * radix + above
    return {**scale, **line, "radix": radix, "readings": json.dumps(numbers.tolist(), separators=(",", ":"))}


def unpack(packed: Mapping[str, Any]) -> tuple[Ints | None, Floats]:
    """Return the times and values of a packed block.

    >>> unpack(pack(np.array([0, 20, 41, 60]), np.array([60.5, 61.0, 60.25, 60.5])))
    (array([ 0, 20, 41, 60]), array([60.5 , 61.  , 60.25, 60.5 ]))
    """
    beyond, above = np.divmod(np.array(json.loads(packed["readings"]), np.int64), packed["radix"])
    value = np.full(len(above), np.nan)
    if packed["divisor"] is not None:
        value = (packed["least"] + above) / packed["divisor"]
    if packed["first_ns"] is None:
        return None, value
    return packed["first_ns"] + (_straight(packed["rise"], len(above)) + beyond) * packed["unit_ns"], value


def kinds_of(value: Floats) -> npt.NDArray[np.uint8]:
    """Return of each value whether it is a plain number (0), NaN (1), infinite (2) or minus zero (3).

    A block has values of one kind; those of the last two are not packed.

    >>> kinds_of(np.array([1.5, np.nan, -np.inf, -0.0])).tolist()
    [0, 1, 2, 3]
    """
    kinds = np.isnan(value).astype(np.uint8)
    kinds[np.isinf(value)] = 2
    kinds[(value == 0) & np.signbit(value)] = 3
    return kinds


def _pack_values(value: Floats, divisor: float) -> tuple[Packed, Ints] | None:
    if np.isnan(value[0]):
        return {"least": None, "divisor": None}, np.zeros(len(value), np.int64)
    whole, first = _whole(value, divisor), value[:FIRST_READINGS]
    for divisor in DECIMAL_DIVISORS if whole is None else ():
        if _whole(first, divisor) is not None and (whole := _whole(value, divisor)) is not None:
            break
    if whole is None and value.any():  # else there is a minus zero among zeros, which no whole number gives
        divisor = _binary_divisor(value)
        whole = _whole(value, divisor)
    if whole is None:
        return None
    least = int(whole.min())
    return {"least": least, "divisor": divisor}, whole - least


def _whole(value: Floats, divisor: float) -> Ints | None:
    """Return whole numbers that give exactly these values when they are divided; None if there are none."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.rint(value * divisor)
        if not np.abs(scaled).max() < MAX_WHOLE:
            return None
        whole = scaled.astype(np.int64)
        again = whole / divisor
    return whole if np.array_equal(again.view(np.int64), value.view(np.int64)) else None


def _binary_divisor(value: Floats) -> float:
    """Return the power of two that makes all values whole numbers, as near as a double can have it.

    >>> _binary_divisor(np.array([0.5, 3.0, 0.375]))
    8.0
    """
    fraction, exponent = np.frexp(value[value != 0])
    digits = (fraction * 2.0**53).astype(np.int64)
    lowest = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return math.ldexp(1.0, min(max(53 - int((exponent + lowest).min()), -1074), 1023))


def _straight(rise: int, count: int) -> Ints:
    """Return the whole numbers nearest to a straight line from 0 to ``rise``, on the side of 0."""
    line = np.arange(count) * abs(rise) // (count - 1)
    return line if rise >= 0 else -line


def _pack_times(elapsed_ns: Ints | None, count: int) -> tuple[Packed, Ints] | None:
    names = ("first_ns", "rise", "unit_ns", "least_elapsed_ns", "most_elapsed_ns")
    if elapsed_ns is None:
        return dict.fromkeys(names), np.zeros(count, np.int64)
    least, most = int(elapsed_ns.min()), int(elapsed_ns.max())
    if max(abs(least), abs(most)) >= MAX_WHOLE:
        return None
    steps = np.diff(elapsed_ns)
    steady = bool((steps == steps[0]).all())
    unit = (abs(int(steps[0])) if steady else int(np.gcd.reduce(steps))) or 1
    units = (elapsed_ns - elapsed_ns[0]) // unit
    rise = int(units[-1])
    if abs(rise) * count >= MAX_NUMBER:
        return None
    beyond = units - _straight(rise, count)
    lowest = int(beyond.min())
    line = (int(elapsed_ns[0]) + lowest * unit, rise, unit, least, most)
    return dict(zip(names, line, strict=True)), beyond - lowest
