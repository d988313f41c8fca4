"""Power and temperature logs whose truth is known: what a board does, and what its sensors and loggers make of it.

A die of one or two thermal constants follows the power, leakage adds to the power as the die warms, and the two are
solved together, step by step, without an approximation within a step. The sensors then average, lag, round to whole
degrees, add noise and spikes, update on a beat of their own and are polled on another; the loggers lose stretches and
keep two clocks. `simulate` gives logs with a known temperature coefficient, or, by their kind, logs
from which it cannot.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEP_S = 0.1
WITHOUT_INFORMATION = ("constant", "short", "throttled", "clock_moved", "stuck", "noise")
LITTLE_INFORMATION = ("small", "steady")  # a degree or two: the interval has to say how little
KINDS = ("informative", *WITHOUT_INFORMATION, *LITTLE_INFORMATION, "many_loads")


class Truth(NamedTuple):
    """What the board is: the figures that a fit should find."""

    kind: str
    law: str  # linear or exponential
    sigma_w_per_c: float  # leakage under load, linear law
    rate_per_c: float  # leakage under load, exponential law
    idle_power_w: float
    idle_temperature_c: float
    resistance_c_per_w: Array  # of each constant
    rc_rise_s: Array
    rc_decay_s: Array
    offset_s: float  # temperature clock minus power clock
    lag_s: float  # the temperature sensor shows what was so long ago
    window_s: float  # the power reading is the mean over the window that ends at it; 0 is instant
    power_update_s: float  # how often each sensor makes a new value
    temperature_update_s: float

    @property
    def shift_s(self) -> float:
        """What aligns the two logs: readings of temperature belong to power readings stamped so much earlier.

        A lag acts like an offset, and so does a value that on average is half an update old; an averaging window and
        an update of the power act against.
        """
        temperature_late, power_late = self.lag_s + self.temperature_update_s / 2, self.window_s + self.power_update_s
        return self.offset_s + temperature_late - power_late / 2


class Log(NamedTuple):
    """A log of power, one of temperature on its own clock, and the marks of the loads on the clock of the power."""

    power_time_s: Array
    power_w: Array
    clock_mhz: Array
    throttled: NDArray[np.bool_]
    fan_w: Array  # power of the fan within `power_w`
    temperature_time_s: Array
    temperature_c: Array
    start_s: Array  # of each segment of one level
    end_s: Array
    load: NDArray[np.int64]  # which load; 0 is idle
    level_w: Array  # of each segment, cold, above idle
    temperature_of_s: Array  # the moment of the board that each temperature shows, on the clock of the power
    noise_c: float  # of the temperature before it is rounded
    truth: Truth

    def segments(self) -> NDArray[np.int64]:
        """Segment of every power reading while a load ran, -1 while the board was idle."""
        at = np.searchsorted(self.start_s, self.power_time_s, side="right") - 1
        return np.where((at >= 0) & (self.load[at] > 0) & (self.power_time_s < self.end_s[at]), at, -1)


class Recipe(NamedTuple):
    """Everything that is drawn for one log."""

    truth: Truth
    start_s: Array
    load: NDArray[np.int64]
    level_w: Array
    end_s: float
    wander_w: float  # of the power itself, with its time constant
    wander_s: float
    sigma_idle: float  # the idle clock and its voltage leak less
    start_c: float  # above idle
    fan_w: float  # at full speed
    rng: np.random.Generator


def simulate(seed: int, count: int, kind: str = "informative", law: str = "linear") -> list[Log]:
    """Logs of one kind; the same seed gives the same logs, and a log does not depend on how many are asked for."""
    assert kind in KINDS, kind
    logs: list[Log] = []
    for first in range(0, count, 100):
        drawn = recipes(seed, range(first, min(first + 100, count)), kind, law)
        power, temperature, fan = physics(drawn)
        logs += [measure(r, power[k], temperature[k], fan[k]) for k, r in enumerate(drawn)]
    return logs


def recipes(seed: int, numbers: range, kind: str = "informative", law: str = "linear") -> list[Recipe]:
    """What the logs of these numbers are made by."""
    return [recipe(np.random.default_rng([seed, KINDS.index(kind), n]), kind, law) for n in numbers]


def recipe(rng: np.random.Generator, kind: str, law: str) -> Recipe:
    """Draw a board, its loads and its two clocks."""
    start, load, level, end = loads(rng, kind)
    highest = max(float(level.max()), 1.0)
    rise = {"constant": rng.uniform(0, 0.5), "noise": 0.0, "small": rng.uniform(1, 3.5)}.get(kind, rng.uniform(14, 40))
    share, rc = constants(rng)
    sigma = rng.uniform(0.03, 0.1) * highest / max(rise, 14)
    truth = Truth(
        kind=kind,
        law=law,
        sigma_w_per_c=sigma if law == "linear" else 0.0,
        rate_per_c=0.0 if law == "linear" else rng.uniform(0.002, 0.006),
        idle_power_w=rng.uniform(20, 90),
        idle_temperature_c=rng.uniform(25, 50),
        resistance_c_per_w=rise / highest * share,
        rc_rise_s=rc,
        rc_decay_s=rc * rng.uniform(1, 1.7),
        offset_s=rng.uniform(-5, 5),
        lag_s=rng.uniform(0, 0.8),
        window_s=float(rng.choice([0.0, 0.1, 1.0])),
        power_update_s=rng.uniform(0.02, 0.25),
        temperature_update_s=rng.uniform(0.02, 0.2),
    )
    start_c = float(rise) if kind == "steady" else rng.choice([0.0, 0.0, rng.uniform(-0.3, 0.5)]) * rise
    return Recipe(
        truth, start, load, level, end,
        wander_w=rng.uniform(0.0005, 0.002) * highest,
        wander_s=rng.uniform(1, 15),
        sigma_idle=sigma * rng.uniform(0.2, 1),
        start_c=start_c,
        fan_w=float(rng.choice([0, 0, 0, rng.uniform(2, 10)])),
        rng=rng,
    )  # fmt: skip


def loads(rng: np.random.Generator, kind: str) -> tuple[Array, NDArray[np.int64], Array, float]:
    """Segments of one level each: idle, then loads with or without idle between them, then idle."""
    if kind == "steady":
        return np.zeros(1), np.ones(1, dtype=np.int64), np.array([rng.uniform(120, 450)]), 300.0
    levels = np.concatenate([[0.0], rng.uniform(120, 450, 3)])
    plan = [(0, rng.uniform(20, 60))]
    few, most = (5, 9) if kind == "many_loads" else (2, 5)
    for _ in range(rng.integers(few, most)):
        plan.append((int(rng.integers(1, 4)), rng.uniform(60, 150)))
        if rng.random() < 0.6:
            plan.append((0, rng.uniform(20, 80)))
    plan.append((0, rng.uniform(60, 150)))
    load = np.array([name for name, _ in plan])
    ends = np.round(np.cumsum([seconds for _, seconds in plan]) / STEP_S) * STEP_S
    return np.concatenate([[0.0], ends[:-1]]), load, levels[load], float(ends[-1])


def constants(rng: np.random.Generator) -> tuple[Array, Array]:
    """Share of the rise and time constant, of the die and of a second part: none, a faster or a slower one."""
    rc = rng.uniform(15, 45)
    second = rng.choice(["none", "none", "fast", "slow"])
    share, other = {"none": (0.0, 1.0), "fast": (rng.uniform(0.2, 0.5), rng.uniform(1, 2.5)),
                    "slow": (rng.uniform(0.15, 0.3), rc * rng.uniform(4, 8))}[str(second)]  # fmt: skip
    return np.array([1 - share, share]), np.array([rc, other])


def physics(recipes: list[Recipe]) -> tuple[Array, Array, Array]:
    """Power, temperature and power of the fan at every step of every log; all logs advance together."""
    steps = 2 + round(max(r.end_s for r in recipes) / STEP_S)
    at = STEP_S * np.arange(steps) + STEP_S / 2
    level = np.stack([r.level_w[np.searchsorted(r.start_s, at, side="right") - 1] for r in recipes])
    wander = np.stack([r.rng.standard_normal(steps) for r in recipes])

    def column(values: list[float]) -> Array:
        return np.array(values)

    truths = [r.truth for r in recipes]
    idle, sigma = column([t.idle_power_w for t in truths]), column([t.sigma_w_per_c for t in truths])
    sigma_idle, rate = column([r.sigma_idle for r in recipes]), column([t.rate_per_c for t in truths])
    exponential = np.array([t.law == "exponential" for t in truths])
    size, memory = column([r.wander_w for r in recipes]), np.exp(-STEP_S / column([r.wander_s for r in recipes]))
    fan_w = column([r.fan_w for r in recipes])
    R = np.stack([t.resistance_c_per_w for t in truths], axis=1)
    keep_up = np.exp(-STEP_S / np.stack([t.rc_rise_s for t in truths], axis=1))
    keep_down = np.exp(-STEP_S / np.stack([t.rc_decay_s for t in truths], axis=1))
    theta = R / np.maximum(R.sum(axis=0), 1e-12) * column([r.start_c for r in recipes])
    drift = size * wander[:, 0]
    power, temperature, fan = (np.empty((len(recipes), steps)) for _ in range(3))
    for k in range(steps):
        above, P0 = theta.sum(axis=0), level[:, k]
        drift = memory * drift + np.sqrt(1 - memory**2) * size * wander[:, k] if k else drift
        linear = idle + P0 + np.where(P0 > 0, sigma, sigma_idle) * above
        P = np.where(exponential & (P0 > 0), (idle + P0) * np.exp(rate * above), linear) + drift * (P0 > 0)
        power[:, k], temperature[:, k] = P, above
        fan[:, k] = fan_w * np.clip((above - 3) / 20, 0, 1)
        target = R * (P - idle)
        theta = target + (theta - target) * np.where(theta < target, keep_up, keep_down)
    return power, temperature + column([t.idle_temperature_c for t in truths])[:, np.newaxis], fan


def measure(r: Recipe, power: Array, temperature: Array, fan: Array) -> Log:
    """What two sensors and two loggers make of it."""
    rng, truth = r.rng.spawn(1)[0], r.truth
    edges = np.append(-2.0, STEP_S * np.arange(power.size + 1))  # before the log the power was the same
    energy = np.concatenate([[-2.0 * power[0], 0.0], np.cumsum(power + fan) * STEP_S])
    slow = truth.kind == "short"
    tp = kept(rng, polls(rng, r.end_s, rng.uniform(30, 60) if slow else rng.choice([0.1, 0.2, 0.5])), slow)
    seen = last_update(rng, tp, truth.power_update_s)
    window = max(truth.window_s, STEP_S / 100)
    P = (np.interp(seen, edges, energy) - np.interp(seen - window, edges, energy)) / window
    P = P + noise_of(rng, seen, rng.uniform(0.001, 0.006) * power.max())
    struck = noise_of(rng, seen, 1.0) > 3.0  # one update in 740
    P = np.where(struck, P * np.where(noise_of(rng, seen, 1.0) > 0, 1.8, 0.2), P)
    tT = kept(rng, polls(rng, r.end_s, rng.uniform(30, 60) if slow else rng.choice([0.1, 0.5, 1.0])), slow)
    shown = last_update(rng, tT, truth.temperature_update_s)
    T = np.interp(shown - truth.lag_s, edges[1:-1], temperature)
    noise_c = 2.0 if truth.kind == "noise" else rng.uniform(0, 0.4)
    T = np.floor(T + noise_of(rng, shown, noise_c))
    if truth.kind == "stuck":
        T = np.full_like(T, T[0])
    loaded = r.level_w[np.searchsorted(r.start_s, tp, side="right") - 1] > 0
    clock = np.where(loaded, 1980.0, 345.0)
    throttled = np.zeros(tp.size, dtype=np.bool_)
    if truth.kind == "throttled":
        throttled = loaded & (np.sin(tp / 5) > 0)
        P = np.where(throttled, 0.9 * P, P)
    if truth.kind == "clock_moved":
        clock = np.where(loaded, 1980 - 15 * np.round(10 + 10 * np.sin(tp / 7)), clock)
    return Log(
        tp, np.round(P, 2), clock, throttled, np.interp(seen - window / 2, edges[1:-1] + STEP_S / 2, fan),
        tT + truth.offset_s, T, r.start_s, np.append(r.start_s[1:], r.end_s), r.load, r.level_w,
        shown - truth.lag_s, noise_c, truth,
    )  # fmt: skip


def polls(rng: np.random.Generator, end_s: float, period_s: float) -> Array:
    """Stamps of a logger that asks every so often, and is late by a few milliseconds."""
    stamps = np.arange(rng.uniform(0, period_s), end_s, period_s)
    return np.asarray(stamps + rng.uniform(0, 0.02, stamps.size))


def kept(rng: np.random.Generator, stamps: Array, whole: bool) -> Array:
    """Stamps without the stretches that were lost."""
    lost = np.zeros(stamps.size, dtype=np.bool_)
    for _ in range(0 if whole else rng.integers(0, 4)):
        start = rng.uniform(0, stamps[-1])
        lost |= (stamps >= start) & (stamps < start + rng.uniform(3, 20))
    return stamps[~lost]


def last_update(rng: np.random.Generator, stamps: Array, period_s: float) -> Array:
    """When the sensor made the value that a poll finds: polls between two updates find the same."""
    phase = rng.uniform(0, period_s)
    return np.asarray(np.floor((stamps - phase) / period_s) * period_s + phase)


def noise_of(rng: np.random.Generator, seen: Array, size: float) -> Array:
    """Noise of each update; polls of one update share it."""
    _, update = np.unique(seen, return_inverse=True)
    return np.asarray(size * rng.standard_normal(int(update.max(initial=0)) + 1)[update])
