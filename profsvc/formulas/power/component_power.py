r"""Power of a GPU from what its units do: component power by access rates, on some or all of its SMs.

The order of [Hong2012] chapter III. Each instruction touches units (`profsvc.specs.instruction_units`); how often a
unit is touched in the time is its access rate; a unit at full rate draws its MaxPower (`profsvc.specs.components`).
Units inside an SM count once an SM, units of the board once. How the sum depends on the number of SMs that work is the
*law*: ``log`` on devices whose idle SMs draw nearly as much as busy ones (GTX280), ``linear`` on those that switch
them off (from Fermi on).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import (
    RELATIVE_TOLERANCE,
    Array,
    Bools,
    Flagged,
    Mask,
    arrays,
    broadcast,
    flagged,
    floats,
    is_implausible,
    mask,
    numbers,
)
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form

LAWS = ("log", "linear")
BETA = 1.1
ISSUE_CYCLES = 4.0
WARP_SIZE = 32.0


class Factors(NamedTuple):
    """Share of its full power that each kind of unit consumes while some SMs work."""

    sm: Array
    board: Array
    flags: Mask


class RuntimePower(NamedTuple):
    """Power above idle: the SMs' part at full occupation, the board's part, the factor of the SMs, sum and parts."""

    max_sm_w: Array
    board_w: Array
    factor: Array
    total_w: Array
    breakdown_w: Array
    flags: Mask


@np.errstate(all="ignore")
def component_power(
    access_rate: ArrayLike, scaling: ArrayLike, max_power_w: ArrayLike, non_gated_w: ArrayLike, idle_w: ArrayLike
) -> Flagged:
    r"""Power of a processor from the access rates of its units, with clocks that cannot be gated.

    .. math:: P = \sum_i \bigl(AccessRate_i \cdot Scaling_i \cdot MaxPower_i + NonGatedClock_i\bigr) + Idle

    [Hong2012] closes the bracket before NonGatedClock, which leaves its index without a sum; here it is inside, as in
    [IsciMartonosi2003].

    Source: [IsciMartonosi2003], as equation (32) of [Hong2012].

    Args:
        access_rate: Accesses over the most that are possible, one unit per place on the last axis [1].
        scaling: Architectural scaling of each unit [1].
        max_power_w: Power of each unit at full access rate [W].
        non_gated_w: Power of the clock of each unit that always runs [W].
        idle_w: Power at rest, without the last axis [W].

    Returns: Valued, without the last axis [W].

    Range: >= idle_w; NaN with INPUT_SUSPECT where an argument is negative, NaN or inf; an access rate above 1 raises
    the flag alone.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or have no axis.

    >>> float(component_power([0.5, 1.0], 1.0, [4.0, 2.0], [1.0, 0.0], 10.0).value)
    15.0
    """
    A, S, M, G = floats(access_rate=access_rate, scaling=scaling, max_power_w=max_power_w, non_gated_w=non_gated_w)
    if A.ndim == 0:
        raise ValueError("the units have no axis; allowed: one unit a place on the last axis")
    units = (A * S * M + G).sum(axis=-1)
    bad = np.asarray(is_implausible(A, S, M, G).any(axis=-1))
    fast = np.asarray((A > 1 + RELATIVE_TOLERANCE).any(axis=-1))
    units, bad, fast, idle = broadcast(units=units, bad=bad, fast=fast, idle_w=numbers("idle_w", idle_w))
    return flagged(units + idle, bad | is_implausible(idle), (Flag.INPUT_SUSPECT, fast))


@np.errstate(all="ignore")
def warps_per_sm(
    threads_per_block: ArrayLike,
    blocks: ArrayLike,
    active_sms: ArrayLike,
    warp_size: ArrayLike = WARP_SIZE,
    form: str = CONSISTENT,
) -> Flagged:
    r"""Warps that an SM executes in the whole launch.

    .. math:: Warps = \frac{threads}{32} \cdot \frac{blocks}{SMs}

    ``consistent`` rounds the warps of a block up: a warp that is partly filled issues as often as a full one.

    Source: [HongKim2010]; equation (42) of [Hong2012].

    Args:
        threads_per_block: Threads of a block [count].
        blocks: Blocks of the grid [count].
        active_sms: SMs that received blocks [count].
        warp_size: Threads of a warp [count].
        form: ``consistent`` or ``as_published``.

    Returns: Valued, warps per SM [count], fractional where the blocks do not divide evenly.

    Range: >= 0; NaN with ZERO_DENOM where no SM is active or a warp is empty, with INPUT_SUSPECT where an argument is
    negative, NaN or inf. TAIL_EFFECT where a warp is partly filled or SMs receive different numbers of blocks.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    >>> warps_per_sm([256, 48], [960, 960], 30).value.tolist()
    [256.0, 64.0]
    """
    check_form(form)
    T, B, n, w = floats(threads_per_block=threads_per_block, blocks=blocks, active_sms=active_sms, warp_size=warp_size)
    warps = T / w if form == AS_PUBLISHED else np.ceil(T / w)
    tail = (np.mod(T, w) > 0) | (np.mod(B, n) > 0)
    W = warps * (B / n)
    zero = (n == 0) | (w == 0)
    W = W if form == AS_PUBLISHED else np.where(zero, np.nan, W)
    return flagged(W, is_implausible(T, B, n, w), (Flag.ZERO_DENOM, zero), (Flag.TAIL_EFFECT, tail & ~zero))


def accesses(counts: ArrayLike, touches: ArrayLike) -> Flagged:
    r"""Warp instructions of one warp that access each unit.

    .. math:: DAC_c = \sum_i Instructions_i(c)

    Source: [HongKim2010]; equation (41) and table 7 of [Hong2012], which is `profsvc.specs.instruction_units`.

    Args:
        counts: Instructions of each kind that one warp executes, one kind per place on the last axis [count].
        touches: Whether a kind (row) accesses a unit (column), booleans.

    Returns: Valued, one unit per place on the last axis [count].

    Range: >= 0; NaN with INPUT_SUSPECT for a unit that a count that is negative, NaN or inf touches.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    Ten additions and two loads, all of which pass the scheduler:

    >>> accesses([10, 2], [[True, False, True], [False, True, True]]).value.tolist()
    [10.0, 2.0, 12.0]
    """
    (I,) = floats(counts=counts)
    m = np.asarray(touches, dtype=np.bool_)
    if m.ndim != 2 or I.shape[-1:] != m.shape[:1]:
        raise ValueError(f"counts has shape {I.shape} and touches {m.shape}; allowed: (..., kinds) and (kinds, units)")
    bad = is_implausible(I)
    return flagged(np.where(bad, 0.0, I) @ m, np.asarray((bad[..., np.newaxis] & m).any(axis=-2)))


@np.errstate(all="ignore")
def access_rate(
    dac: ArrayLike,
    warps: ArrayLike,
    cycles: ArrayLike,
    issue_cycles: ArrayLike = ISSUE_CYCLES,
    ceiling: ArrayLike = 1.0,
) -> Flagged:
    r"""Access rate of a unit, relative to the most that an SM can issue.

    .. math:: AccessRate_c = \frac{DAC_c \cdot Warps_{SM}}{Cycles / 4}

    With predicted cycles it is equation (61), with measured ones equation (40).

    Source: [HongKim2010]; equations (40) and (61) of [Hong2012].

    Args:
        dac: Warp instructions of one warp that access the unit, of `accesses` [count].
        warps: Warps an SM executes, of `warps_per_sm` [count].
        cycles: Cycles that the launch takes on an SM [cycles].
        issue_cycles: Cycles between two instructions that an SM issues: 4 on the GTX280, 1 where an SM issues one a
            cycle, 0.25 where four schedulers do [cycles].
        ceiling: The most the unit can reach: 0.25 for the two SFUs of an SM of the GTX280 [1].

    Returns: Valued, the rate as computed [1].

    Range: [0, ceiling]; above it INPUT_SUSPECT and RAW_OUT_OF_RANGE are raised and the value stays. NaN with
    ZERO_DENOM where ``cycles`` is 0, with INPUT_SUSPECT where an argument is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(access_rate(50, 256, 102400).value)
    0.5
    """
    D, W, C, i, most = floats(dac=dac, warps=warps, cycles=cycles, issue_cycles=issue_cycles, ceiling=ceiling)
    rate = D * W * i / C
    over = rate > most * (1 + RELATIVE_TOLERANCE)
    return flagged(
        np.where(C == 0, np.nan, rate),
        is_implausible(D, W, C, i, most),
        (Flag.ZERO_DENOM, C == 0),
        (Flag.INPUT_SUSPECT | Flag.RAW_OUT_OF_RANGE, over & (C > 0)),
    )


@np.errstate(all="ignore")
def special_linear(access: ArrayLike, form: str = CONSISTENT) -> Flagged:
    r"""Effective access rate of a unit that wakes up with a jump.

    .. math:: f(x) = 0.1365 \ln x + 1.001375

    ``consistent`` clips it to [0, 1] with f(0) = 0: the print is negative below 6.5e-4 and above 1 at 1.

    Source: section 3.2.4 of [Hong2012]; [HongKim2010].

    Args:
        access: Access rate [1].
        form: ``consistent`` or ``as_published``.

    Returns: Valued, the effective rate [1].

    Range: [0, 1] when consistent, CLIPPED where that changed the value; -inf at 0 as published. A rate above 1 raises
    INPUT_SUSPECT; NaN where it is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for an unknown form.

    >>> special_linear([0.0, 0.1, 1.0]).value.round(6).tolist()
    [0.0, 0.687072, 1.0]
    """
    check_form(form)
    (x,) = floats(access=access)
    raw = 0.1365 * np.log(x) + 1.001375
    out = (raw < 0) | (raw > 1)
    over = (Flag.INPUT_SUSPECT, x > 1 + RELATIVE_TOLERANCE)
    if form == AS_PUBLISHED:
        return flagged(raw, is_implausible(x), over, (Flag.RAW_OUT_OF_RANGE, out))
    return flagged(np.clip(raw, 0, 1), is_implausible(x), over, (Flag.RAW_OUT_OF_RANGE | Flag.CLIPPED, out))


@np.errstate(all="ignore")
def active_factors(
    active_sms: ArrayLike, num_sms: ArrayLike, law: str = "log", beta: ArrayLike = BETA, form: str = CONSISTENT
) -> Factors:
    r"""Share of the full power at a number of active SMs.

    .. math:: g_{log}(n) = \log_{10}(\alpha n + \beta), \quad \alpha = \frac{10 - \beta}{N}
              \qquad g_{linear}(n) = \frac{n}{N}

    The logarithmic law scales the units of the board as well. Under the linear law they are on as soon as one SM is
    (activation, caches, memory at its own access rate). ``consistent`` has 0 at n = 0, where the print has
    log10(1.1) = 0.04.

    Source: [HongKim2010]; equations (44) to (48) of [Hong2012], for ``linear`` section 3.11.1, which has no equation.

    Args:
        active_sms: SMs that work, n [count].
        num_sms: SMs of the device, N [count].
        law: ``log`` or ``linear``.
        beta: Parameter of the logarithmic law [1].
        form: ``consistent`` or ``as_published``.

    Returns: Factors, for units inside SMs and of the board [1].

    Range: [0, 1] for n in [0, N] and beta in [1, 10); beyond N INPUT_SUSPECT is raised. NaN where an argument is
    negative, NaN or inf, or N is 0 (ZERO_DENOM).

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast, an unknown law or form.

    >>> active_factors([0, 1, 20, 30], 30).sm.round(4).tolist()
    [0.0, 0.1451, 0.8472, 1.0]
    """
    check_form(form)
    check_form(law, LAWS)
    n, N, b = floats(active_sms=active_sms, num_sms=num_sms, beta=beta)
    on = np.where(n > 0, 1.0, 0.0)
    g = np.log10((10 - b) / N * n + b) if law == "log" else n / N
    if law == "log" and form == CONSISTENT:
        g = np.where(n == 0, 0.0, g)
    bad = is_implausible(n, N, b)
    flags = ((Flag.ZERO_DENOM, N == 0), (Flag.INPUT_SUSPECT, n > N))
    sm = flagged(np.where(N == 0, np.nan, g), bad, *flags)
    return Factors(sm.value, flagged(sm.value if law == "log" else on, bad, *flags).value, sm.flags)


@np.errstate(all="ignore")
def runtime_power(
    access: ArrayLike,
    max_power_w: ArrayLike,
    special: ArrayLike,
    per_sm: ArrayLike,
    active_sms: ArrayLike,
    num_sms: ArrayLike,
    *,
    law: str = "log",
    beta: ArrayLike = BETA,
    form: str = CONSISTENT,
) -> RuntimePower:
    r"""Power above idle from the access rates of the units.

    .. math:: P = g_{SM}(n) \cdot N \sum_{c \in SM} r_c M_c + g_{board}(n) \sum_{c \in board} r_c M_c, \qquad
              r_c = f(AccessRate_c) \text{ or } AccessRate_c

    with f of `special_linear` for the units that ``special`` names, and g of `active_factors`; under the logarithmic
    law both g are equal, which is equation (48).

    Source: [HongKim2010]; equations (36) to (39), (43) to (48) of [Hong2012].

    Args:
        access: Access rates, one unit per place on the last axis; 1 for what is always on [1].
        max_power_w: MaxPower of each unit [W].
        special: Whether each unit follows `special_linear`, booleans.
        per_sm: Whether each unit is there once an SM (else once a board), booleans.
        active_sms: SMs that work, without the last axis [count].
        num_sms: SMs of the device [count].
        law: ``log`` or ``linear``.
        beta: Parameter of the logarithmic law [1].
        form: ``consistent`` or ``as_published``, of `special_linear` and `active_factors`.

    Returns: RuntimePower; ``max_sm_w`` (equation 45) and ``board_w`` (equation 43) without the factor, ``total_w`` and
    ``breakdown_w`` (one unit per place on the last axis, which add up to the total) with it [W].

    Range: >= 0 when consistent; NaN where an input of the number is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast, an unknown law or form.

    An FP unit and an SM's constant part on 20 of 30 SMs, and memory at a tenth of its rate:

    >>> power = runtime_power([0.5, 1, 0.1], [0.2, 0.813, 52], [True, False, True], [True, True, False], 20, 30)
    >>> power.breakdown_w.round(2).tolist(), round(float(power.total_w), 2)
    ([4.61, 20.66, 30.27], 55.54)
    """
    x, M = floats(access=access, max_power_w=max_power_w)
    if x.ndim == 0:
        raise ValueError("the units have no axis; allowed: one unit a place on the last axis")
    of_sm, jumps = np.asarray(per_sm, dtype=np.bool_), np.asarray(special, dtype=np.bool_)
    n, N, b = floats(active_sms=active_sms, num_sms=num_sms, beta=beta)
    curve = special_linear(x, form)
    factors = active_factors(n, N, law, b, form)
    full = np.where(jumps, curve.value, np.where(is_implausible(x), np.nan, x)) * np.where(is_implausible(M), np.nan, M)
    full = full * np.where(of_sm, N[..., np.newaxis], 1.0)
    g = np.where(of_sm, factors.sm[..., np.newaxis], factors.board[..., np.newaxis])
    parts = full * g
    max_sm, board = (np.where(units, full, 0.0).sum(axis=-1) for units in (of_sm, ~of_sm))
    flags = _any_flag(
        np.where(jumps, curve.flags, mask((Flag.INPUT_SUSPECT, is_implausible(x) | (x > 1 + RELATIVE_TOLERANCE)))),
        is_implausible(M),
    )
    return RuntimePower(*arrays(max_sm, board, factors.sm, parts.sum(axis=-1), parts, factors.flags | flags))


def _any_flag(by_unit: Mask, bad: Bools) -> Mask:
    """Flags of a row from those of its units."""
    every = np.asarray(by_unit | mask((Flag.INPUT_SUSPECT, bad)), dtype=np.uint32)
    joined: NDArray[np.uint32] = np.bitwise_or.reduce(every, axis=-1)
    return joined


@np.errstate(all="ignore")
def gpu_power(runtime_w: ArrayLike, idle_w: ArrayLike) -> Flagged:
    r"""Power of the whole board.

    .. math:: P_{GPU} = P_{runtime} + P_{idle}

    Source: [HongKim2010]; equations (35) and (55) of [Hong2012].

    Args:
        runtime_w: Power above idle, of `runtime_power` or `leakage.power_at_temperature` [W].
        idle_w: Power at rest [W].

    Returns: Valued [W].

    Range: >= idle_w; NaN with INPUT_SUSPECT where an argument is negative, NaN or inf.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    >>> float(gpu_power(66.0, 27.0).value)
    93.0
    """
    P, idle = floats(runtime_w=runtime_w, idle_w=idle_w)
    return flagged(P + idle, is_implausible(P, idle))
