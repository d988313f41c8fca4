"""Work and depth of an algorithm: time on a number of processors, and how many of them help.

Work W is the number of operations of unit cost, depth D the length of the longest chain of them that depend on each
other. Neither knows the machine. The last two functions choose the next optimization to try.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import (
    Array,
    Flagged,
    Mask,
    arrays,
    flagged,
    floats,
    is_implausible,
    mask,
    numbers,
)
from profsvc.formulas.numerics.flags import Flag


class WorkDepth(NamedTuple):
    """Work and depth [operations]."""

    work: Array
    depth: Array
    flags: Mask


class Accepted(NamedTuple):
    """Set of optimizations after a stage, the one that was added (-1: none), and whether any is left to try."""

    chosen: NDArray[np.bool_]
    added: NDArray[np.intp]
    open: NDArray[np.bool_]


def brent_time(W: ArrayLike, D: ArrayLike, p: ArrayLike) -> Flagged:
    r"""Steps in which p processors can execute a graph of operations.

    .. math:: T_p = D + \frac{W - D}{p}

    Source: [Kim2012] equation 2.1; [Brent1974].

    Args:
        W: Work [operations].
        D: Depth [operations].
        p: Processors [count].

    Returns: Valued [operations, one after another].

    Range: [D, W] for p of 1 or more, W at p = 1, to D as p grows; never more than twice max(W/p, D), below which no
    schedule can be. No processor: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT; D above
    W: the flag alone.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    The tree of 16 inputs of the source on one and on six adders:

    >>> brent_time(31, 5, [1, 6]).value.round(2).tolist()
    [31.0, 9.33]
    """
    w, d, n = floats(W=W, D=D, p=p)
    with np.errstate(all="ignore"):
        value = np.where(n == 0, np.nan, d + (w - d) / n)
    return flagged(value, is_implausible(w, d, n), (Flag.ZERO_DENOM, n == 0), (Flag.INPUT_SUSPECT, d > w))


def available_parallelism(W: ArrayLike, D: ArrayLike) -> Flagged:
    r"""Operations that can be executed at a time, on average over the longest chain: W / D.

    Source: [Kim2012] section 2.2.

    Args:
        W: Work [operations].
        D: Depth [operations].

    Returns: Valued [processors].

    Range: 1 or more where D is at most W; D above W: INPUT_SUSPECT. No depth: NaN, ZERO_DENOM. A number that is
    negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(available_parallelism(31, 5).value)
    6.2
    """
    w, d = floats(W=W, D=D)
    with np.errstate(all="ignore"):
        value = np.where(d == 0, np.nan, w / d)
    return flagged(value, is_implausible(w, d), (Flag.ZERO_DENOM, d == 0), (Flag.INPUT_SUSPECT, d > w))


def max_speedup(p: ArrayLike, W: ArrayLike, D: ArrayLike, excess: ArrayLike = 1.0) -> Flagged:
    r"""Most that p processors gain over the best sequential algorithm.

    .. math:: S \le \frac{\min(p, W/D)}{\epsilon}, \qquad \epsilon = W / W_0

    An algorithm whose work exceeds the best sequential one's, W_0, by a factor needs as many processors to match it.

    Source: [Kim2012] section 2.2, whose p/epsilon is this for W far above p D.

    Args:
        p: Processors [count].
        W: Work [operations].
        D: Depth [operations].
        excess: Work over that of the best sequential algorithm, epsilon [1].

    Returns: Valued [1].

    Range: [0, p]. No depth, or no excess factor: NaN,
    ZERO_DENOM. An excess below 1, or D above W: INPUT_SUSPECT. Negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    A factor of log n, at n = 1024: of 100 processors ten are left.

    >>> float(max_speedup(100, 1e6, 10, np.log2(1024)).value)
    10.0
    """
    n, w, d, e = floats(p=p, W=W, D=D, excess=excess)
    zero = (d == 0) | (e == 0)
    with np.errstate(all="ignore"):
        value = np.where(zero, np.nan, np.minimum(n, w / d) / e)
    odd = (d > w) | ((e > 0) & (e < 1))
    return flagged(value, is_implausible(n, w, d, e), (Flag.ZERO_DENOM, zero), (Flag.INPUT_SUSPECT, odd))


def reduction_tree(n: ArrayLike) -> WorkDepth:
    r"""Work and depth of a tree that reduces n values, each a load.

    .. math:: W = 2n - 1, \qquad D = \log_2 n + 1

    Source: [Kim2012] figure 2.3.

    Args:
        n: Values, a power of 2 [count].

    Returns: WorkDepth.

    Range: W in [1, 2n), D at least 1. Not a power of 2: the depth is that of the next one, TAIL_EFFECT. Less than one
    value, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype.

    >>> tree = reduction_tree(16)
    >>> float(tree.work), float(tree.depth)
    (31.0, 5.0)
    """
    (x,) = floats(n=n)
    bad = is_implausible(x) | (x < 1)
    with np.errstate(all="ignore"):
        levels = np.log2(x)
        up = np.ceil(levels)
    work, depth = (np.where(bad, np.nan, value) for value in (2 * x - 1, up + 1))
    return WorkDepth(*arrays(work, depth, mask((Flag.INPUT_SUSPECT, bad), (Flag.TAIL_EFFECT, (up != levels) & ~bad))))


def next_candidates(chosen: ArrayLike) -> NDArray[np.bool_]:
    """Sets to try in the next stage of the greedy search: the chosen one with one optimization more.

    Source: [Kim2012] section 3.5.2. The whole search tries at most l (l + 1) / 2 sets of the 2^l there are (the print
    says l!), and may miss the best: an optimization can pay off only beside another.

    Args:
        chosen: Which optimizations are in, booleans on the only axis.

    Returns: a row a candidate, in the order of the optimizations that are not in.

    Range: no rows where all are in.

    Errors: TypeError for other than booleans, ValueError for another number of axes.

    >>> next_candidates([True, False, False]).astype(int).tolist()
    [[1, 1, 0], [1, 0, 1]]
    """
    given = _set(chosen)
    free = np.flatnonzero(~given)
    return np.asarray(given | (np.arange(given.size) == free[:, np.newaxis]))


def accept(chosen: ArrayLike, scores: ArrayLike) -> Accepted:
    """Set after a stage of the greedy search: the best candidate, if it is better than without.

    Source: [Kim2012] section 3.5.2.

    Args:
        chosen: Which optimizations are in, booleans on the only axis.
        scores: Performance of the chosen set, and then of each of `next_candidates` [any, more is better]; NaN where it
            does not run.

    Returns: Accepted; ``added`` is the place of the new optimization, the first of equals.

    Range: nothing is added where no candidate is better, and the search ends.

    Errors: TypeError for a wrong dtype, ValueError for another number of scores.

    Shared memory pays off first:

    >>> stage = accept([False, False], [70.0, 68.0, 190.0])
    >>> int(stage.added), stage.chosen.tolist(), bool(stage.open)
    (1, [False, True], True)
    """
    given = _set(chosen)
    free = np.flatnonzero(~given)
    score = numbers("scores", scores).astype(np.float64)
    if score.shape != (free.size + 1,):
        raise ValueError(f"scores have shape {score.shape}; allowed: ({free.size + 1},), the set and its candidates")
    ranked = np.where(np.isnan(score), -np.inf, score)
    best = int(ranked.argmax())
    added = int(free[best - 1]) if best else -1
    after = given | (np.arange(given.size) == added)
    return Accepted(after, np.asarray(added), np.asarray(best > 0 and not after.all()))


def _set(chosen: ArrayLike) -> NDArray[np.bool_]:
    given: NDArray[np.bool_] = np.asarray(chosen)
    if given.dtype != np.bool_:
        raise TypeError(f"chosen has dtype {given.dtype}; allowed: booleans")
    if given.ndim != 1:
        raise ValueError(f"chosen has shape {given.shape}; allowed: one axis")
    return given
