"""Helpers of all formulas: arguments to arrays, masks from conditions, reductions over groups."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.flags import Flag

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Mask = NDArray[np.uint32]

MAX_SHARE_NOT_PERCENT = 1.5  # a share above it is taken for a percentage
RELATIVE_TOLERANCE = 1e-9  # relations between measured numbers hold up to rounding


def numbers(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return the argument as an array of real numbers, in its own dtype."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} has dtype {array.dtype}; allowed: integers and floats")
    return array


def broadcast(**named: NDArray[Any]) -> list[NDArray[Any]]:
    """Broadcast arrays to one shape; the error names those that do not fit."""
    try:
        return list(np.broadcast_arrays(*named.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in named.items())
        raise ValueError(f"the shapes do not broadcast: {shapes}") from None


def floats(**named: ArrayLike | None) -> list[Array]:
    """Arguments as float64 of one shape; None becomes NaN, which optional arguments take for unknown."""
    return broadcast(
        **{
            name: np.asarray(numbers(name, np.nan if value is None else value), dtype=np.float64)
            for name, value in named.items()
        }
    )


def flat_floats(**named: ArrayLike | None) -> list[Array]:
    """Arguments as float64 of one flat shape."""
    arrays = [np.atleast_1d(array) for array in floats(**named)]
    if arrays[0].ndim > 1:
        raise ValueError(f"{', '.join(named)} have shape {arrays[0].shape}; allowed: flat arrays, with group ids")
    return arrays


def is_implausible(*counts: Array) -> Bools:
    """Return where one of the numbers cannot be a count, a time or a share: negative, NaN or inf."""
    bad = np.zeros((), dtype=np.bool_)
    for count in counts:
        bad = bad | ~(np.isfinite(count) & (count >= 0))
    return bad


def mask(*raised: tuple[Flag, ArrayLike]) -> Mask:
    """Masks from pairs of a flag and where it is raised."""
    bits = np.zeros((), dtype=np.uint32)
    for flag, where in raised:
        bits = np.asarray(bits | np.where(where, np.uint32(flag), np.uint32(0)))
    return bits


def smallest_with_index(choices: Array) -> tuple[Array, NDArray[np.intp]]:
    """Lowest of few choices on the last axis, NaN where one is NaN, and its place: the first of equals, NaN the last.

    Choice after choice over all rows is several times as fast as row after row.
    """
    first, *others = np.moveaxis(choices, -1, 0)
    least, known = np.asarray(first), np.where(np.isnan(first), np.inf, first)
    place = np.zeros(first.shape, dtype=np.intp)
    for number, other in enumerate(others, 1):
        place = np.where(other < known, number, place)
        known, least = np.fmin(known, other), np.minimum(least, other)
    return np.asarray(least), np.asarray(place)


def clip_to_unit(x: Array) -> Array:
    """Clip to [0, 1]; NaN stays."""
    return np.asarray(np.clip(x, 0.0, 1.0))


def arrays(*values: Any) -> tuple[Any, ...]:
    """Results as arrays: arithmetic on arrays of no dimension yields scalars."""
    return tuple(np.asarray(value) for value in values)


class Share(NamedTuple):
    """A time share ready for use, and its flags."""

    value: Array
    flags: Mask


class Flagged(NamedTuple):
    """One number per row, and its flags."""

    value: Array
    flags: Mask


def flagged(value: Any, bad: Bools, *raised: tuple[Flag, ArrayLike]) -> Flagged:
    """Return values with NaN and INPUT_SUSPECT where an input is bad, and the other flags elsewhere."""
    others = np.where(bad, np.uint32(Flag.INPUT_SUSPECT), mask(*raised))
    return Flagged(*arrays(np.where(bad, np.nan, value), others.astype(np.uint32)))


def is_not_finite(*given: Array) -> Bools:
    """Return where one of the numbers is NaN or inf, for quantities that may be negative, such as temperatures."""
    bad = np.zeros((), dtype=np.bool_)
    for x in given:
        bad = bad | ~np.isfinite(x)
    return bad


def known_share(p: Array) -> Share:
    """Clip a share to [0, 1]; NaN is unknown, so that 1 is assumed."""
    unknown = np.isnan(p)
    bad = is_implausible(p) & ~unknown
    value = np.where(unknown, 1.0, np.where(bad, np.nan, clip_to_unit(p)))
    return Share(
        value,
        mask(
            (Flag.UPPER_BOUND, unknown),
            (Flag.INPUT_SUSPECT, bad | (p > MAX_SHARE_NOT_PERCENT)),
            (Flag.RAW_OUT_OF_RANGE, p > 1),
        ),
    )


class Groups:
    """Rows in groups, for reductions without a Python loop. No ``group`` means one group of all rows."""

    def __init__(self, group: ArrayLike | None, n: int, keep: Bools | None = None) -> None:
        """Take ids for ``n`` rows, of which only those in ``keep`` are reduced; their ids stay in any case."""
        self.one = group is None
        given = np.zeros(n, dtype=np.int64) if group is None else np.asarray(group)
        if given.dtype.kind not in "iu" and given.size:
            raise TypeError(f"group has dtype {given.dtype}; allowed: integers")
        if given.ndim > 1 or given.size not in (1, n):
            raise ValueError(f"group has shape {given.shape}; allowed: ({n},)")
        self.ids, codes = np.unique(np.broadcast_to(given.ravel(), (n,)), return_inverse=True)
        if self.one:
            self.ids = np.zeros(1, dtype=np.int64)
        self.codes: NDArray[np.intp] = codes if keep is None else codes[keep]
        self.order = np.argsort(self.codes, kind="stable")
        self.counts = np.bincount(self.codes, minlength=self.ids.size)
        self.filled = self.counts > 0
        self.starts = (np.cumsum(self.counts) - self.counts)[self.filled]

    def reduce(self, ufunc: np.ufunc, x: NDArray[Any], order: NDArray[np.intp] | None = None) -> NDArray[Any]:
        """Reduce each group; ``order`` may sort further inside the groups. An empty group gives 0."""
        out = np.zeros(self.ids.size, dtype=x.dtype)
        if self.starts.size:
            out[self.filled] = ufunc.reduceat(x[self.order if order is None else order], self.starts)
        return out

    def any(self, where: Bools) -> Bools:
        """Return whether a row of the group fulfils the condition."""
        return self.reduce(np.logical_or, where)

    def shaped(self, *results: NDArray[Any]) -> tuple[Any, ...]:
        """Return one entry per group, or arrays of no dimension if no group was given."""
        return tuple(np.asarray(result[0]) if self.one else np.asarray(result) for result in results)
