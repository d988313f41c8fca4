"""Balance of computation and memory: transfers of an algorithm, their time, and whether a machine can hide it.

A machine of p cores with C_0 operations per time each, Z words of fast memory, latency alpha, bandwidth beta in words
per time, which moves lines of L words. An algorithm of work W and depth D makes Q transfers of a line.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.numerics.arrays import Array, Bools, Flagged, Mask, arrays, flagged, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

POINT_WORDS = 4  # coordinates and a potential, or a density


class Balance(NamedTuple):
    """Both sides of a balance, and right over left: 1 or more where computation can hide memory."""

    machine: Array
    algorithm: Array
    slack: Array
    flags: Mask


class Transfers(NamedTuple):
    """Transfers of a line, operations, and operations per word moved."""

    Q: Array
    W: Array
    intensity: Array
    flags: Mask


class NearField(NamedTuple):
    """Words moved for a target point, operations per byte, and words of fast memory that hold two boxes of points."""

    words: Array
    intensity: Array
    Z: Array
    flags: Mask


def transfer_bound(
    Q_1: ArrayLike, p: ArrayLike, Z: ArrayLike, D: ArrayLike, L: ArrayLike, k: ArrayLike = 1.0
) -> Flagged:
    r"""Most transfers of a parallel execution with private caches, from those of the sequential one.

    .. math:: Q_p < Q_1 + k \frac{p Z D}{L}

    Source: [Kim2012] equation 2.2: with work stealing, with high probability; the constant is not known.

    Args:
        Q_1: Transfers of the sequential execution [lines].
        p: Cores [count].
        Z: Words of a private cache [words].
        D: Depth [operations].
        L: Words of a line [words].
        k: The constant [1].

    Returns: Valued [lines].

    Range: Q_1 or more. No words per line: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(transfer_bound(1e6, 16, 4096, 20, 32).value)
    1040960.0
    """
    q, n, z, d, w, c = floats(Q_1=Q_1, p=p, Z=Z, D=D, L=L, k=k)
    with np.errstate(all="ignore"):
        value = np.where(w == 0, np.nan, q + c * n * z * d / w)
    return flagged(value, is_implausible(q, n, z, d, w, c), (Flag.ZERO_DENOM, w == 0))


def comp_time(W: ArrayLike, D: ArrayLike, p: ArrayLike, C_0: ArrayLike, form: str = CONSISTENT) -> Flagged:
    r"""Time of the computation alone.

    .. math:: T_{comp} = \frac{1}{C_0} \Bigl(D + \frac{W - D}{p}\Bigr)

    Source: [Kim2012] equation 2.1, in time.

    Args:
        W: Work [operations].
        D: Depth [operations].
        p: Cores [count].
        C_0: Operations of a core per time [1/time].
        form: ``consistent`` or ``as_published``.

    Returns: Valued [time].

    Range: 0 or more. No cores, or no rate: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: operations are compared with time, without C_0; default consistent.

    >>> float(comp_time(31, 5, 1, 10).value), float(comp_time(31, 5, 1, 10, "as_published").value)
    (3.1, 31.0)
    """
    check_form(form)
    w, d, n, c = floats(W=W, D=D, p=p, C_0=C_0)
    zero = (n == 0) | (c == 0)
    with np.errstate(all="ignore"):
        steps = d + (w - d) / n
        value = steps if form == AS_PUBLISHED else np.where(zero, np.nan, steps / c)
    return flagged(value, is_implausible(w, d, n, c), (Flag.ZERO_DENOM, zero), (Flag.INPUT_SUSPECT, d > w))


def mem_time(alpha: ArrayLike, D: ArrayLike, Q: ArrayLike, L: ArrayLike, beta: ArrayLike) -> Flagged:
    r"""Time of the memory alone: a latency for each step of the longest chain, and all transfers at full bandwidth.

    .. math:: T_{mem} = \alpha D + \frac{Q L}{\beta}

    Source: [Kim2012] equation 2.3.

    Args:
        alpha: Latency [time].
        D: Depth [operations].
        Q: Transfers [lines].
        L: Words of a line [words].
        beta: Bandwidth [words/time].

    Returns: Valued [time].

    Range: 0 or more. No bandwidth: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(mem_time(5, 10, 100, 8, 16).value)
    100.0
    """
    a, d, q, w, b = floats(alpha=alpha, D=D, Q=Q, L=L, beta=beta)
    with np.errstate(all="ignore"):
        value = np.where(b == 0, np.nan, a * d + q * w / b)
    return flagged(value, is_implausible(a, d, q, w, b), (Flag.ZERO_DENOM, b == 0))


def balance(
    p: ArrayLike,
    C_0: ArrayLike,
    beta: ArrayLike,
    alpha: ArrayLike,
    L: ArrayLike,
    W: ArrayLike,
    D: ArrayLike,
    Q: ArrayLike,
    form: str = CONSISTENT,
) -> Balance:
    r"""Balance of machine and algorithm: whether computation can hide the memory time.

    .. math:: \frac{p C_0}{\beta} \Bigl(1 + \frac{\alpha \beta / L}{Q / D}\Bigr) \le
              \frac{W}{Q L} \Bigl(1 + \frac{p - 1}{W / D}\Bigr)

    Left the balance of the machine, with the transfers in flight that its latency asks for, over those the algorithm
    offers (Little); right the intensity of the algorithm, with its share that is not parallel (Amdahl).

    Source: [Kim2012] equation 2.4.

    Args:
        p: Cores [count].
        C_0: Operations of a core per time [1/time].
        beta: Bandwidth [words/time].
        alpha: Latency [time].
        L: Words of a line [words].
        W: Work [operations].
        D: Depth [operations].
        Q: Transfers [lines].
        form: ``consistent`` or ``as_published``.

    Returns: Balance [operations/word]. Consistent, the slack is T_comp / T_mem of `comp_time` and `mem_time`.

    Range: slack 0 or more. No transfers: NaN, NOT_APPLICABLE. No bandwidth, no line or no work: NaN, ZERO_DENOM. A
    number that is negative, NaN or inf: NaN, INPUT_SUSPECT; D above W: the flag alone.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: p where equations 2.1 and 2.3 give p - 1; default consistent.

    >>> hidden = balance(p=14, C_0=64e9, beta=36e9, alpha=4e-7, L=32, W=1e9, D=30, Q=1e5)
    >>> float(hidden.machine.round(1)), float(hidden.algorithm.round(1)), float(hidden.slack.round(1))
    (28.2, 312.5, 11.1)
    """
    check_form(form)
    n, c, b, a, w, work, d, q = floats(p=p, C_0=C_0, beta=beta, alpha=alpha, L=L, W=W, D=D, Q=Q)
    cores = n if form == AS_PUBLISHED else n - 1
    with np.errstate(all="ignore"):
        machine = n * c / b * (1 + a * b / w * d / q)
        algorithm = work / (q * w) * (1 + cores * d / work)
    zero = (b == 0) | (w == 0) | (work == 0)
    return _balance(machine, algorithm, zero, q == 0, (n, c, b, a, w, work, d, q), d > work)


def kung_balance(p: ArrayLike, C_0: ArrayLike, beta: ArrayLike, W: ArrayLike, Q: ArrayLike, L: ArrayLike) -> Balance:
    r"""The classical balance: operations per word of the machine against those of the algorithm.

    .. math:: \frac{p C_0}{\beta} \le \frac{W}{Q L}

    Source: [Kim2012] equation 2.5, after [Kung1986]: `balance` without latency and with all work parallel.

    Args:
        p: Cores [count].
        C_0: Operations of a core per time [1/time].
        beta: Bandwidth [words/time].
        W: Work [operations].
        Q: Transfers [lines].
        L: Words of a line [words].

    Returns: Balance [operations/word].

    Range: slack 0 or more. No transfers: NaN, NOT_APPLICABLE. No bandwidth or no line: NaN, ZERO_DENOM. A number that
    is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Ten operations per byte, against an algorithm with five:

    >>> float(kung_balance(10, 100e9, 100e9, 5e6, 1e4, 100).slack)
    0.5
    """
    n, c, b, work, q, w = floats(p=p, C_0=C_0, beta=beta, W=W, Q=Q, L=L)
    with np.errstate(all="ignore"):
        machine, algorithm = n * c / b, work / (q * w)
    return _balance(machine, algorithm, (b == 0) | (w == 0), q == 0, (n, c, b, work, q, w))


def _balance(
    machine: Array, algorithm: Array, zero: Bools, unused: Bools, given: tuple[Array, ...], odd: Bools | bool = False
) -> Balance:
    bad = is_implausible(*given)
    none = bad | zero | unused
    with np.errstate(all="ignore"):
        sides = (machine, algorithm, algorithm / machine)
    flags = mask((Flag.INPUT_SUSPECT, bad | odd), (Flag.ZERO_DENOM, zero & ~bad), (Flag.NOT_APPLICABLE, unused & ~bad))
    return Balance(*arrays(*(np.where(none, np.nan, x) for x in sides), flags))


def reduction_transfers(n: ArrayLike, Z: ArrayLike, L: ArrayLike, form: str = CONSISTENT) -> Transfers:
    r"""Transfers and additions when n values are reduced in pieces that fill the fast memory.

    .. math:: Q = n / L, \qquad W = \frac{n}{Z} (Z - 1), \qquad I = \frac{W}{Q L} = 1 - \frac{1}{Z}

    Source: [Kim2012] section 2.3. The intensity cannot be raised by more memory or longer lines.

    Args:
        n: Values [words].
        Z: Fast memory [words].
        L: Words of a line [words].
        form: ``consistent`` or ``as_published``.

    Returns: Transfers; W without the additions that join the pieces.

    Range: intensity in [0, 1). No memory, or no words per line: NaN, ZERO_DENOM. A number that is negative, NaN or inf:
    NaN, INPUT_SUSPECT; more memory than values, or lines longer than the memory: the flag alone.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: n - Z additions, and 1 - Z/n; n/Z pieces of Z - 1 are n - n/Z. Default consistent.

    >>> float(reduction_transfers(1024, 64, 8).W), float(reduction_transfers(1024, 64, 8, "as_published").W)
    (1008.0, 960.0)
    """
    check_form(form)
    x, z, w = floats(n=n, Z=Z, L=L)
    bad, zero = is_implausible(x, z, w), (z == 0) | (w == 0) | (x == 0)
    with np.errstate(all="ignore"):
        work = x - z if form == AS_PUBLISHED else x - x / z
        results = (x / w, work, work / x)
    flags = mask((Flag.INPUT_SUSPECT, bad | (z > x) | (w > z)), (Flag.ZERO_DENOM, zero & ~bad))
    return Transfers(*arrays(*(np.where(bad | zero, np.nan, r) for r in results), flags))


def matmul_transfers(n: ArrayLike, Z: ArrayLike, L: ArrayLike, k: ArrayLike = 1.0) -> Transfers:
    r"""Transfers of a matrix product in blocks, three of which fill the fast memory; no algorithm makes fewer.

    .. math:: Q = k \frac{n^3}{L \sqrt Z}, \qquad W = 2 n^3, \qquad I = \frac{2 \sqrt Z}{k}

    Source: [Kim2012] section 2.3, where only the order is given: twice the line halves the transfers, twice the memory
    saves a factor of sqrt 2. Without blocks they are of the order n^3 / L, which is Z = 1 here.

    Args:
        n: Rows of the matrices [count].
        Z: Fast memory [words].
        L: Words of a line [words].
        k: The constant [1].

    Returns: Transfers; multiplications and additions both count.

    Range: 0 or more. No memory, no words per line or no constant: NaN, ZERO_DENOM. A number that is negative, NaN or
    inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> product = matmul_transfers(1024, 4096, 32)
    >>> float(product.Q), float(product.intensity)
    (524288.0, 128.0)
    """
    x, z, w, c = floats(n=n, Z=Z, L=L, k=k)
    bad, zero = is_implausible(x, z, w, c), (z == 0) | (w == 0) | (c == 0)
    with np.errstate(all="ignore"):
        results = (c * x**3 / (w * np.sqrt(z)), 2 * x**3, 2 * np.sqrt(z) / c)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero & ~bad))
    return Transfers(*arrays(*(np.where(bad | zero, np.nan, r) for r in results), flags))


def near_field(
    q: ArrayLike, kappa: ArrayLike, neighbors: ArrayLike = 27.0, word_bytes: ArrayLike = 4.0, form: str = CONSISTENT
) -> NearField:
    r"""Intensity of the near field of a fast multipole method, the sums between adjacent boxes of q points.

    .. math:: words = 4 (1 + u) + 4, \qquad I = \frac{u \kappa q}{words \cdot word\_bytes}, \qquad Z = 8 q

    Source: [Kim2012] sections 3.3 and 3.5.

    Args:
        q: Points of a box [count].
        kappa: Operations of an interaction [count].
        neighbors: Boxes a box interacts with, itself included, u [count].
        word_bytes: Bytes of a word [bytes].
        form: ``consistent`` or ``as_published``.

    Returns: NearField; the intensity is proportional to q, so that I / I(q = 1) points reach intensity I.

    Range: 0 or more. No bytes per word: NaN, ZERO_DENOM. A number that is negative, NaN or inf: NaN, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: one interaction a pair of boxes per target box in place of u, so that 422 points seem to be
    needed for 10 operations per byte, where 16 are; default consistent.

    >>> [float((10 / near_field(1, 11, form=form).intensity).round(1)) for form in ("as_published", "consistent")]
    [421.8, 15.6]
    """
    check_form(form)
    n, c, u, b = floats(q=q, kappa=kappa, neighbors=neighbors, word_bytes=word_bytes)
    bad, zero = is_implausible(n, c, u, b), b == 0
    words = POINT_WORDS * (u + 2)
    pairs = 1.0 if form == AS_PUBLISHED else u
    with np.errstate(all="ignore"):
        results = (words, pairs * c * n / (words * b), 2 * POINT_WORDS * n)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero & ~bad))
    return NearField(*arrays(*(np.where(bad | zero, np.nan, r) for r in results), flags))
