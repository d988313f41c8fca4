r"""Cost of instructions: cycles at the issue port, and instructions that a diverged warp issues.

A warp issues what one of its threads executes, so counts a thread are counts a warp. Memory instructions are counted
apart from the others, which the source calls computation.
"""

import numpy as np
from numpy.typing import ArrayLike

from profsvc.formulas.mwp_cwp.result import Quantity
from profsvc.formulas.numerics.arrays import arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import AS_PUBLISHED, CONSISTENT, Flag, check_form


def m_factor(ops_per_cycle: ArrayLike, sps: ArrayLike = 8.0) -> Quantity:
    r"""Issue cycles of an instruction, relative to one that every lane finishes each cycle.

    .. math:: M = \frac{SPs}{ops\_per\_cycle}

    Source: [Hong2012] section 2.6.4 and table 6, with 8 lanes per SM.

    Args:
        ops_per_cycle: Operations of the class that an SM finishes in a cycle [1/cycle].
        sps: Lanes of an SM [count].

    Returns: Quantity [1].

    Range: above 0; below 1 for a class with more units than lanes. No operations per cycle: NaN, ZERO_DENOM.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Addition, and division, which has a quarter of the rate:

    >>> m_factor([8, 2]).value.tolist()
    [1.0, 4.0]
    """
    ops, lanes = floats(ops_per_cycle=ops_per_cycle, sps=sps)
    bad, zero = is_implausible(ops, lanes), ops == 0
    with np.errstate(all="ignore"):
        M = np.where(bad | zero, np.nan, lanes / ops)
    return Quantity(*arrays(M, mask((Flag.INPUT_SUSPECT, bad), (Flag.ZERO_DENOM, zero))))


def mean_m_factor(n_class: ArrayLike, M_class: ArrayLike) -> Quantity:
    r"""Mean factor of a mix of computation instructions, which `comp_cycles` takes.

    .. math:: M = \frac{\sum_k M_k n_k}{\sum_k n_k}

    Source: [Hong2012] equation 30 with the factors of table 6, summed over the classes of instructions.

    Args:
        n_class: Computation instructions of a warp, one class per place on the last axis [count].
        M_class: Factor of each class, likewise [1].

    Returns: Quantity [1], without the last axis.

    Range: between the least and the largest factor of the classes in use. No instruction: 1, NOT_APPLICABLE.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or no class.

    Nine additions and a division:

    >>> float(mean_m_factor([9, 1], [1.0, 4.0]).value)
    1.3
    """
    n, M = (np.atleast_1d(x) for x in floats(n_class=n_class, M_class=M_class))
    if n.shape[-1] == 0:
        raise ValueError(f"n_class has shape {n.shape}; allowed: at least one class of instructions last")
    bad = is_implausible(n, M).any(axis=-1)
    total = n.sum(axis=-1)
    with np.errstate(all="ignore"):
        mean = np.where(total == 0, 1.0, (M * n).sum(axis=-1) / total)
    flags = mask((Flag.INPUT_SUSPECT, bad), (Flag.NOT_APPLICABLE, (total == 0) & ~bad))
    return Quantity(*arrays(np.where(bad, np.nan, mean), flags))


def comp_cycles(
    n_comp: ArrayLike,
    n_mem: ArrayLike,
    M_Factor: ArrayLike = 1.0,
    issue_cycles: ArrayLike = 4.0,
    form: str = CONSISTENT,
) -> Quantity:
    r"""Cycles in which the instructions of one warp hold the issue port.

    .. math:: Comp\_cycles = issue (M\, n_{comp} + n_{mem}) \qquad
              Comp\_cycles_{published} = issue \cdot M (n_{comp} + n_{mem})

    Source: [Hong2012] equations 18 and 30.

    Args:
        n_comp: Computation instructions of a warp [count].
        n_mem: Memory instructions of a warp [count].
        M_Factor: Mean factor of the computation instructions, see `mean_m_factor` [1].
        issue_cycles: Cycles to issue one instruction of a warp, 32 threads over the lanes of the SM [cycles].
        form: ``consistent`` or ``as_published``.

    Returns: Quantity [cycles].

    Range: 0 or more.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast or an unknown form.

    Defect of the print: one factor multiplies memory instructions too, which issue in one slot whatever the others
    cost; default consistent.

    >>> float(comp_cycles(27, 6).value), float(comp_cycles(27, 6, 4.0, form="as_published").value)
    (132.0, 528.0)
    """
    check_form(form)
    n_c, n_m, M, issue = floats(n_comp=n_comp, n_mem=n_mem, M_Factor=M_Factor, issue_cycles=issue_cycles)
    bad = is_implausible(n_c, n_m, M, issue)
    with np.errstate(all="ignore"):
        published = issue * M * (n_c + n_m)
        cycles = published if form == AS_PUBLISHED else np.where(bad, np.nan, issue * (M * n_c + n_m))
    return Quantity(*arrays(cycles, mask((Flag.INPUT_SUSPECT, bad))))


def divergent_instructions(path_uses_block: ArrayLike, insts: ArrayLike, form: str = CONSISTENT) -> Quantity:
    r"""Instructions that a diverged warp issues, from the paths its threads take through the basic blocks.

    .. math:: n = \sum_b insts_b [\exists p : uses_{pb}] \qquad n_{published} = \sum_p \sum_b uses_{pb}\, insts_b

    Source: [Hong2012] section 2.6.5 and figure 29, the sum over all paths.

    Args:
        path_uses_block: Whether a path runs through a block, paths on the last axis but one and blocks on the last;
            booleans, or numbers of which 0 is no.
        insts: Instructions of each block, blocks on the last axis [count].
        form: ``consistent`` or ``as_published``.

    Returns: Quantity [instructions], without the last two axes.

    Range: from the longest path to the sum over the paths.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit or an unknown form.

    Defect of the print: the threads meet again after a branch, and blocks that paths share run once; default
    consistent.

    The three paths of figure 29 through blocks of one instruction each, B1 B2 B4 B6 B7, B1 B2 B5 B6 B7, B1 B3 B7:

    >>> uses = [[1, 1, 0, 1, 0, 1, 1], [1, 1, 0, 0, 1, 1, 1], [1, 0, 1, 0, 0, 0, 1]]
    >>> float(divergent_instructions(uses, [1] * 7).value)
    7.0
    >>> float(divergent_instructions(uses, [1] * 7, "as_published").value)
    13.0
    """
    check_form(form)
    given = np.asarray(path_uses_block)
    uses, n = floats(path_uses_block=given.astype(np.int8) if given.dtype == np.bool_ else given, insts=0)
    (n,) = floats(insts=insts)
    if uses.ndim < 2 or n.shape[-1:] != uses.shape[-1:]:
        raise ValueError(
            f"path_uses_block has shape {uses.shape}, insts {n.shape}; allowed: (..., paths, blocks) and (..., blocks)"
        )
    bad = is_implausible(n).any(axis=-1) | is_implausible(uses).any(axis=(-2, -1))
    taken = uses != 0
    times = taken.sum(axis=-2) if form == AS_PUBLISHED else taken.any(axis=-2)
    with np.errstate(all="ignore"):
        total = (times * n).sum(axis=-1)
    if form != AS_PUBLISHED:
        total = np.where(bad, np.nan, total)
    return Quantity(*arrays(total, mask((Flag.INPUT_SUSPECT, bad))))
