"""Scales, ticks and text sizes of figures that are drawn without matplotlib. Places are points, with y upwards."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
MAX_TICKS = 9
MAX_DECADES = 10
MARGIN = 0.05
"""Room between data and frame, as a share of their range, where no limit is set."""
LETTERS = {**dict.fromkeys("ijl.,:;'|!() ", 0.34), **dict.fromkeys("mwMW%@", 0.92), **dict.fromkeys("frt-/", 0.42)}
"""Widths of letters in sizes of the font, of a wide sans serif."""


class Scale(NamedTuple):
    """One axis: its limits in data, its ends in points, and whether it is logarithmic."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def places(self, values: Any) -> Floats:
        """Return the places of values.

        >>> Scale(1, 100, 0, 10, True).places([1, 10]).tolist()
        [0.0, 5.0]
        """
        found = np.asarray(values, np.float64)
        low, high = self.low, self.high
        if self.is_log:
            found = np.log10(np.where(found > 0, found, np.nan))
            low, high = math.log10(low), math.log10(high)
        return self.begin + (found - low) / (high - low) * (self.end - self.begin)

    def values(self, places: Any) -> Floats:
        """Return the values at places.

        >>> Scale(0, 5, 0, 10).values([2, 10]).tolist()
        [1.0, 5.0]
        """
        share = (np.asarray(places, np.float64) - self.begin) / (self.end - self.begin)
        if self.is_log:
            low, high = math.log10(self.low), math.log10(self.high)
            return np.asarray(10.0 ** (low + share * (high - low)))
        return np.asarray(self.low + share * (self.high - self.low))


class Transform:
    """From data, or shares of axes, to points; each coordinate has a scale of its own."""

    def __init__(self, x: Callable[[], Scale], y: Callable[[], Scale]) -> None:
        """Take the scales, which are asked for when they are needed, since limits change."""
        self._x, self._y = x, y

    def transform(self, points: Any) -> Floats:
        """Return the places of a point or of rows of points."""
        found = np.asarray(points, np.float64)
        return np.stack([self._x().places(found[..., 0]), self._y().places(found[..., 1])], axis=-1)

    def inverted(self) -> "Inverse":
        """Return the way back."""
        return Inverse(self._x(), self._y())


class Inverse(NamedTuple):
    """From points to data."""

    x: Scale
    y: Scale

    def transform(self, places: Any) -> Floats:
        """Return the data at places."""
        found = np.asarray(places, np.float64)
        return np.stack([self.x.values(found[..., 0]), self.y.values(found[..., 1])], axis=-1)


def limits(given: tuple[float | None, float | None], values: Sequence[Floats], is_log: bool) -> tuple[float, float]:
    """Return the limits of an axis: those given, else those of the values with some room.

    >>> limits((0.0, None), [np.array([10.0, 20.0])], False)
    (0.0, 20.5)
    """
    known = np.concatenate([np.zeros(0), *values])
    known = known[np.isfinite(known) & ((known > 0) | (not is_log))]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.1 if is_log else 0.0, 1.0)
    if is_log:
        room = (high / low) ** MARGIN if high > low else 2.0
        low, high = low / room, high * room
    else:
        room = (high - low) * MARGIN if high > low else abs(high) * MARGIN or MARGIN
        low, high = low - room, high + room
    low, high = (low if given[0] is None else given[0]), (high if given[1] is None else given[1])
    return (low, high) if high > low else (low, low * 2 if is_log else low + 1.0)


def ticks(scale: Scale, steps: Sequence[int] = (1,)) -> list[float]:
    """Return the values of ticks: round numbers, or of a logarithmic axis the steps of each decade.

    >>> ticks(Scale(0, 1.06, 0, 1)), ticks(Scale(0.5, 200, 0, 1, True))
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [1.0, 10.0, 100.0])
    """
    if scale.is_log:
        first, last = math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high))
        every = max(1, -(-(last - first) // MAX_DECADES))
        found = [step * 10.0**power for power in range(first, last + 1, every) for step in steps]
    else:
        span = scale.high - scale.low
        size = 10.0 ** math.floor(math.log10(span / MAX_TICKS))
        step = next(size * factor for factor in (1, 2, 2.5, 5, 10, 20) if span / (size * factor) <= MAX_TICKS)
        first = math.ceil(scale.low / step - 1e-9)
        digits = 3 - math.floor(math.log10(step))
        found = [round(number * step, digits) for number in range(first, math.floor(scale.high / step + 1e-9) + 1)]
    room = 1e-9 * (scale.high - scale.low)
    return [value for value in found if scale.low - room <= value <= scale.high + room]


def tick_texts(values: Sequence[float]) -> list[str]:
    """Return the numbers of ticks with as many digits as distinguish them.

    >>> tick_texts([0.0, 0.5, 1.0]), tick_texts([1000000.0, 1000001.0])
    (['0', '0.5', '1'], ['1000000', '1000001'])
    """
    for digits in range(6, 18):
        found = [f"{value:.{digits}g}" for value in values]
        if len(set(found)) == len(found):
            break
    return found


def text_width(words: str, size: float) -> float:
    """Return about how wide a text is.

    >>> round(text_width("warps", 10), 1)
    31.7
    """
    return size * max(
        (sum(LETTERS.get(one, 0.7 if one.isupper() else 0.61) for one in line) for line in words.split("\n")),
        default=0.0,
    )
