"""Noise of series without a change, of sd 1: every kind that benchmarks and tests of changes are held against."""

from collections.abc import Callable

import numpy as np

Rng = np.random.Generator
Floats = np.ndarray


def white(rng: Rng, series: int, nights: int) -> Floats:
    """Return independent normal noise of sd 1, one row for each series."""
    return rng.standard_normal((series, nights))


def autoregressive(rng: Rng, series: int, nights: int, rho: float) -> Floats:
    """Return noise of sd 1 whose neighbours correlate."""
    x = rng.standard_normal((series, nights))
    for night in range(1, nights):
        x[:, night] = rho * x[:, night - 1] + np.sqrt(1 - rho**2) * x[:, night]
    return x


def two_states(rng: Rng, series: int, nights: int, up: float, down: float, height: float = 6.0) -> Floats:
    """Return noise of sd 1 about two levels, which each night leaves for the other with these probabilities."""
    there = np.zeros((series, nights), dtype=bool)
    there[:, 0] = rng.random(series) < up / (up + down)
    for night in range(1, nights):
        leaves = rng.random(series)
        there[:, night] = np.where(there[:, night - 1], leaves >= down, leaves < up)
    return there * height + rng.standard_normal((series, nights))


def lognormal(rng: Rng, series: int, nights: int) -> Floats:
    """Return noise of sd 1 that is long on the slow side."""
    x = rng.lognormal(0.0, 0.8, (series, nights))
    return (x - np.exp(0.32)) / np.sqrt((np.exp(0.64) - 1) * np.exp(0.64))


def weekly(rng: Rng, series: int, nights: int, height: float = 3.0) -> Floats:
    """Return noise with weekends that are slower."""
    return white(rng, series, nights) + height * (np.arange(nights) % 7 >= 5)


def drifting(rng: Rng, series: int, nights: int, each_night: float = 0.05) -> Floats:
    """Return noise about a level that rises by a twentieth of the sd every night."""
    return white(rng, series, nights) + each_night * np.arange(nights)


def bursts(rng: Rng, series: int, nights: int, often: float = 0.02, long: int = 3, height: float = 6.0) -> Floats:
    """Return noise with bursts of three high values, one in fifty nights."""
    begins = rng.random((series, nights)) < often
    high = np.zeros((series, nights), dtype=bool)
    for late in range(long):
        high[:, late:] |= begins[:, : nights - late]
    return white(rng, series, nights) + height * high


def missing(rng: Rng, series: int, nights: int) -> Floats:
    """Return noise of which a third of the nights is missing."""
    return np.where(rng.random((series, nights)) < 1 / 3, np.nan, white(rng, series, nights))


def three_states(rng: Rng, series: int, nights: int) -> Floats:
    """Return noise about three levels; each is left once in eight nights for one of the others."""
    at = np.zeros((series, nights), dtype=int)
    at[:, 0] = rng.integers(0, 3, series)
    for night in range(1, nights):
        leaves = rng.random(series) < 1 / 8
        at[:, night] = np.where(leaves, (at[:, night - 1] + rng.integers(1, 3, series)) % 3, at[:, night - 1])
    return 6.0 * at + white(rng, series, nights)


def alternating(rng: Rng, series: int, nights: int) -> Floats:
    """Return noise about two levels, of which each night has the other one."""
    return white(rng, series, nights) + 8.0 * (np.arange(nights) % 2)


def slow_wave(rng: Rng, series: int, nights: int) -> Floats:
    """Return noise about a level that swings by the sd of a night, once in thirty nights."""
    phase = rng.random((series, 1))
    return white(rng, series, nights) + np.sin(2 * np.pi * (np.arange(nights) / 30 + phase))


def louder(rng: Rng, series: int, nights: int) -> Floats:
    """Return noise of which the sd doubles in the middle."""
    return white(rng, series, nights) * np.where(np.arange(nights) < nights // 2, 0.5, 1.0)


def outliers(rng: Rng, series: int, nights: int) -> Floats:
    """Return noise of which one value in ten has five times the sd."""
    return white(rng, series, nights) * np.where(rng.random((series, nights)) < 0.1, 5.0, 1.0)


NOISES: dict[str, Callable[[Rng, int, int], Floats]] = {
    "white": white,
    "AR(1) 0.3": lambda rng, series, nights: autoregressive(rng, series, nights, 0.3),
    "AR(1) 0.6": lambda rng, series, nights: autoregressive(rng, series, nights, 0.6),
    "AR(1) 0.9": lambda rng, series, nights: autoregressive(rng, series, nights, 0.9),
    "t3": lambda rng, series, nights: rng.standard_t(3, (series, nights)) / np.sqrt(3),
    "lognormal": lognormal,
    "two states": lambda rng, series, nights: two_states(rng, series, nights, 0.3, 0.7),
    "two states, sticky": lambda rng, series, nights: two_states(rng, series, nights, 0.1, 0.1),
    "three states": three_states,
    "weekly": weekly,
    "drift": drifting,
    "bursts": bursts,
    "quantised": lambda rng, series, nights: np.round(white(rng, series, nights)),
    "coarse": lambda rng, series, nights: np.round(white(rng, series, nights) / 2) * 2,
    "missing": missing,
}
UNSEEN: dict[str, Callable[[Rng, int, int], Floats]] = {
    "alternating": alternating,
    "AR(1) -0.4": lambda rng, series, nights: autoregressive(rng, series, nights, -0.4),
    "Laplace": lambda rng, series, nights: rng.laplace(0.0, np.sqrt(0.5), (series, nights)),
    "slow wave": slow_wave,
    "louder from half": louder,
    "outliers": outliers,
}
