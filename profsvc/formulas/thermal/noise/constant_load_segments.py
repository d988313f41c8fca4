"""Segments of constant load: which of their readings count, in blocks, and the temperature without its rounding."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from profsvc.formulas.numerics.arrays import Array, Bools
from profsvc.formulas.numerics.series import medians

Codes = NDArray[np.intp]
HiddenError = tuple[Array, float]  # the shape of an error over the blocks, and its variance

MIN_READINGS = 20  # readings of a segment
MAX_BLOCKS = 150  # over all segments; more cost time without information, as adjacent readings are correlated
BLOCKS_PER_SEGMENT = 8  # so many at least, where there are many segments: a die cools within seconds
MIN_BLOCK_S = 1.0  # of a block: boards average the power over up to a second
CURVE_CONSTANTS_S = np.geomspace(2.0, 200.0, 16)  # any two of these exponentials follow the temperature over a segment
BLOCKS_PER_CURVE = 8
MAX_CLOCK_CHANGE = 0.01  # share of the clock
SPIKE_SD = 6.0  # standard deviations
MIN_F_RATIO = 10.0  # F of the curves against a constant; by chance less than one segment in a thousand


class Readings(NamedTuple):
    """Readings one by one; `segment` counts from 0."""

    time: Array
    power: Array
    temperature: Array
    fan: Array
    clock: Array
    throttled: Array
    load: Array
    segment: Codes

    def take(self, keep: Bools) -> "Readings":
        """Return the readings kept; segments without readings are renumbered away."""
        codes = np.unique(self.segment[keep], return_inverse=True)[1]
        return self._replace(
            time=self.time[keep], power=self.power[keep], temperature=self.temperature[keep], fan=self.fan[keep],
            clock=self.clock[keep], throttled=self.throttled[keep], load=self.load[keep], segment=codes,
        )  # fmt: skip

    def segments(self) -> int:
        """Return the number of segments."""
        return int(self.segment.max(initial=-1)) + 1


class Blocks(NamedTuple):
    """Means over blocks; `smooth` is the temperature the curves give, `drift` its slope in time."""

    time: Array
    power: Array
    temperature: Array
    fan: Array
    size: Array  # readings of each
    segment: Codes
    of_reading: Codes
    span: float
    smooth: Array
    drift: Array


class BlockTemperatures(Protocol):
    """Fields common to all kinds of blocks."""

    @property
    def temperature(self) -> Array:
        """Mean of each."""

    @property
    def segment(self) -> Codes:
        """Segment of each."""


def temperature_readings(time: Array, temperature: Array) -> Readings:
    """Readings of a temperature alone, in one segment."""
    nothing = np.zeros(time.size)
    codes = np.zeros(time.size, dtype=np.intp)
    return Readings(time, nothing, temperature, nothing, nothing, nothing, nothing, codes)


def segment_ranges(x: Array, segment: Codes) -> Array:
    """Largest minus smallest of every segment."""
    low, high = (np.full(int(segment.max(initial=-1)) + 1, v) for v in (np.inf, -np.inf))
    np.minimum.at(low, segment, x)
    np.maximum.at(high, segment, x)
    return np.asarray(high - low)


def group_means(x: Array, code: Codes) -> Array:
    """Mean of every group, all of which have members."""
    return np.asarray(np.bincount(code, x) / np.bincount(code))


def usable_readings(r: Readings, settle_s: float) -> tuple[Readings, str]:
    """Readings later than the first seconds of segments that kept their clock; and the reason if no reading is left."""
    if not r.segments():
        return r, "no reading of a load has both a power and a temperature"
    start = np.full(r.segments(), np.inf)
    np.minimum.at(start, r.segment, r.time)
    r = r.take(r.time - start[r.segment] >= settle_s)
    if not r.segments():
        return r, f"no segment lasts longer than the first {settle_s:g} s, which are left out"
    slow = group_means(r.throttled, r.segment)
    spread = segment_ranges(r.clock, r.segment) / np.maximum(medians(r.clock, r.segment, r.segments()), 1e-12)
    count = np.bincount(r.segment)
    one, most = f"at least in {slow.min():.0%} of the readings", f"{count.max()} readings at most"
    good = np.ones(r.segments(), dtype=np.bool_)
    for passed, why in (
        (slow == 0, f"the board throttled in every segment, {one}"),
        (
            spread <= MAX_CLOCK_CHANGE,
            f"the clock moved in every segment, by {spread.min():.1%} or more; 1 % is allowed",
        ),
        (count >= MIN_READINGS, f"the segments have {most}; a coefficient needs {MIN_READINGS}"),
    ):
        good &= passed
        if not good.any():
            return r.take(good[r.segment]), why
    r = r.take(good[r.segment])
    levels = medians(r.clock, r.segment, r.segments())
    if np.ptp(levels) > MAX_CLOCK_CHANGE * np.median(levels):
        return r, f"the segments ran at clocks from {levels.min():g} to {levels.max():g}; a coefficient holds for one"
    return r, ""


def without_spikes(r: Readings) -> Readings:
    """Readings whose power agrees with the adjacent ones and with the temperature."""
    b = segment_blocks(r, middle=True)
    level, slope = instrumental_line(b, b.power)
    curve = b.smooth[b.of_reading] + b.drift[b.of_reading] * (r.time - b.time[b.of_reading])
    rest = r.power - slope * curve - level[r.segment]
    rest = rest - medians(rest, r.segment, r.segments())[r.segment]
    scale = 1.4826 * medians(np.abs(rest), r.segment, r.segments())[r.segment]
    return r.take(np.abs(rest) <= SPIKE_SD * np.maximum(scale, 1e-9 * np.abs(r.power)))


def instrumental_line(b: Blocks, y: Array) -> tuple[Array, float]:
    """Intercepts and slope of y over the temperature, by the smooth one as its instrument."""
    inner = b.smooth - group_means(b.smooth, b.segment)[b.segment]
    square = float(inner @ b.temperature)
    slope = float(inner @ y) / square if square > 0 else 0.0
    return group_means(y - slope * b.smooth, b.segment), slope


def segment_blocks(r: Readings, middle: bool = False) -> Blocks:
    """Blocks of equal length within each segment; `middle` takes the median of the power, which spikes do not move."""
    blocks = max(MAX_BLOCKS, BLOCKS_PER_SEGMENT * r.segments())
    span = max(float(segment_ranges(r.time, r.segment).sum()) / blocks, MIN_BLOCK_S)
    start = np.full(r.segments(), np.inf)
    np.minimum.at(start, r.segment, r.time)
    place = np.floor((r.time - start[r.segment]) / span).astype(np.int64)
    key, code = np.unique(r.segment * (place.max() + 1) + place, return_inverse=True)
    segment = (key // (place.max() + 1)).astype(np.intp)
    time, temperature = group_means(r.time, code), group_means(r.temperature, code)
    size = np.bincount(code).astype(np.float64)
    smooth, drift = _smooth_temperature(time - start[segment], temperature, size, segment)
    power = medians(r.power, code, key.size) if middle else group_means(r.power, code)
    return Blocks(time, power, temperature, group_means(r.fan, code), size, segment, code, span, smooth, drift)


def _smooth_temperature(age: Array, temperature: Array, size: Array, segment: Codes) -> tuple[Array, Array]:
    """The temperature of each segment as a constant and the best one or two exponentials, and its slope in time."""
    smooth, drift = np.empty_like(age), np.empty_like(age)
    for k in range(int(segment.max()) + 1):
        here = segment == k
        since, W = age[here] - age[here].min(), np.sqrt(size[here])
        one = np.arange(CURVE_CONSTANTS_S.size)
        i, j = (one, one) if curve_count(since.size) == 1 else np.triu_indices(CURVE_CONSTANTS_S.size, 1)
        E = np.exp(-since / CURVE_CONSTANTS_S[:, np.newaxis])
        B = np.stack([np.ones_like(E[i]), E[i], E[j]][: 1 + curve_count(since.size)], axis=2)
        q, _ = np.linalg.qr(B * W[:, np.newaxis])
        fitted = (q @ (q.swapaxes(1, 2) @ (temperature[here] * W))[..., np.newaxis])[..., 0]
        best = int(np.argmin(((fitted - temperature[here] * W) ** 2).sum(axis=1)))
        found = np.linalg.lstsq(B[best] * W[:, np.newaxis], temperature[here] * W, rcond=1e-9)[0]
        rc = CURVE_CONSTANTS_S[[i[best], j[best]]][: found.size - 1]
        smooth[here], drift[here] = B[best] @ found, -(B[best][:, 1:] / rc) @ found[1:]
    return smooth, drift


def curve_count(rows: int) -> int:
    """Return how many exponentials a number of blocks supports."""
    return 2 if rows >= 2 * BLOCKS_PER_CURVE else 1


def significant_ranges(b: Blocks) -> Array:
    """Range of the smooth temperature in each segment; one that scatter alone could make counts as none."""
    rest = (b.temperature - b.smooth) ** 2
    inner = (b.smooth - group_means(b.smooth, b.segment)[b.segment]) ** 2
    rows = np.bincount(b.segment)
    curves = np.array([curve_count(int(n)) for n in rows])
    noise = np.bincount(b.segment, rest) / np.maximum(rows - curves - 1, 1)
    F = np.bincount(b.segment, inner) / curves / np.maximum(noise, 1e-12)
    return np.where((rows > curves + 1) & (F > MIN_F_RATIO), segment_ranges(b.smooth, b.segment), 0.0)


def rounding_step(temperature: Array) -> float:
    """Step to which a sensor rounds: the least difference of the values it shows again and again; 0 if none."""
    values, count = np.unique(np.round(temperature, 6), return_counts=True)
    often = count >= 3
    if often.sum() < 2 or count[often].sum() < temperature.size / 2:
        return 0.0
    return float(np.diff(values[often]).min())


def rounded_plateau(r: Readings, b: BlockTemperatures, step: float) -> list[HiddenError]:
    """Return the hidden error of a rounded temperature at rest: no reading shows where between two steps it is.

    For every segment: the blocks that show that value, and the variance of the error they share. A reading that
    flickers between two values betrays the place, so that the error vanishes.
    """
    found = []
    for k in range(int(b.segment.max()) + 1):
        time, T = (x[r.segment == k] for x in (r.time, r.temperature))
        last = T[time >= time.max() - 0.2 * np.ptp(time)]
        rest = np.median(last)
        flicker = float(np.mean(np.abs(last - rest) > step / 4))
        shown = (b.segment == k) & (np.abs(b.temperature - rest) < step / 2)
        variance = step**2 / 12 * max(0.0, 1 - 4 * flicker * (1 - flicker))
        found.append((shown.astype(np.float64), variance))
    return found


def unseen_range(r: Readings, b: Blocks, step: float) -> list[HiddenError]:
    """Return the hidden error of the range of a rounded temperature, which leaves no trace in the residuals.

    Each end of a segment lies anywhere within a step of its reading, unless the readings flicker; every step that is
    passed on the way pins the curve where it was passed. For every segment: its own curve, of a range of one, and the
    variance of that range.
    """
    centre = medians(r.temperature, b.of_reading, b.time.size)[b.of_reading]
    away = group_means((np.abs(r.temperature - centre) > step / 4).astype(np.float64), b.of_reading)
    resolved = np.bincount(b.segment, 4 * away * (1 - away)) / np.bincount(b.segment)
    inner = b.smooth - group_means(b.smooth, b.segment)[b.segment]
    found = []
    for k, moved in enumerate(segment_ranges(b.smooth, b.segment)):
        passed = max(moved / step, 1.0) if step > 0 else np.inf
        shape = np.where(b.segment == k, inner / max(moved, 1e-12), 0.0)
        found.append((shape, step**2 / 6 * max(0.0, 1 - resolved[k]) / passed))
    return found
