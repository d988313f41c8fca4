"""Parameters of the machine, and results of the model."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Array, Mask


class Machine(NamedTuple):
    """Numbers of a machine: latencies and the delay between two transactions in cycles, widths in lanes of an SM."""

    DRAM_lat: ArrayLike
    hit_lat: ArrayLike
    Delta: ArrayLike
    avg_inst_lat: ArrayLike
    FP_lat: ArrayLike
    SIMD_width: ArrayLike
    SFU_width: ArrayLike
    mem_peak_bandwidth: ArrayLike  # bytes/s
    freq: ArrayLike  # Hz, of the SM
    transaction_size: ArrayLike = 128.0  # bytes
    warp_size: ArrayLike = 32.0
    Gamma: ArrayLike = 64.0  # cost of a barrier


class Benefit(NamedTuple):
    """Result of `benefit`, in cycles; ``bound`` is COMPUTE or MEMORY, -1 where it is not known."""

    T_exec: Array
    T_comp: Array
    T_mem: Array
    T_overlap: Array
    W_parallel: Array
    W_serial: Array
    O_sync: Array
    O_SFU: Array
    AMAT: Array
    ITILP: Array
    ITILP_max: Array
    ITMLP: Array
    MWP: Array
    MWP_cp: Array
    CWP: Array
    MWP_peak_bw: Array
    T_fp: Array
    T_mem_min: Array
    B_itilp: Array
    B_serial: Array
    B_fp: Array
    B_memlp: Array
    bound: NDArray[np.int8]
    flags: Mask


class GammaFit(NamedTuple):
    """Cost of a barrier, its standard error, the time without barriers, and the share of the spread explained."""

    Gamma: Array
    se: Array
    base: Array
    r2: Array
    flags: Mask
