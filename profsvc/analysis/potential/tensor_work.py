"""Work of the tensor pipe: its operations of each type, and the time that they need at the peak rate of their type.

The busy time of the pipe does not measure it: an instruction of an older kind keeps the pipe busy longer for
the same operations, constants moved through it and packed half precision keep it busy without any matrix, and on some
boards the count of busy cycles does not know how wide the accumulator is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts, once
from profsvc.formulas.performance.useful_work import matrix_time
from profsvc.tables.on_demand import pd

Array = NDArray[np.float64]
TENSOR_TYPES = ("fp16", "bf16", "tf32", "fp64", "fp8", "int8", "int4", "int1")
"""Types of the operands of a matrix product, each with a peak rate of its own."""
# What every chip with tensor cores of its generation, and the sets of the tool, count together.
COMMON_TYPES = ("fp16", "bf16", "tf32", "fp64", "int8")
# Without operation counters, tensor work is assumed above this utilization of the pipe.
MIN_PIPE_UTILIZATION = 0.05


@once
@np.errstate(all="ignore")
def has_tensor_work(c: Counts) -> NDArray[np.bool_]:
    """Whether matrices were multiplied. Constant moves of other kernels also keep that pipe busy, a little."""
    operations, instructions = tensor_operations(c), c["inst_tensor_warp"]
    none = ~c.lacks(*(f"tensor_ops_{kind}" for kind in COMMON_TYPES)) & (operations == 0)
    pipe = np.fmax(c["pipe_tensor_elapsed_fraction"], c["fu_tensor_utilization_fraction"])
    busy = np.where(np.isnan(pipe), instructions > 0, (pipe > MIN_PIPE_UTILIZATION) & ~(instructions == 0))
    return np.asarray((operations > 0) | (busy & ~none), dtype=np.bool_)


@np.errstate(all="ignore")
def uses_single_warps(c: Counts, figures: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether matrices are multiplied by instructions of one warp, where a chip has faster ones of a warp group.

    There are none for doubles, and they read shared memory. A warp that waits for one of them stalls for GMMA. Blocks
    of fewer than four warps can be larger.
    """
    groups = np.fmax.reduce(
        [c["inst_tensor_gmma_warp"], c["shared_gmma_transactions"], c["stall_gmma_warp_cycles"],
         c["stall_gmma_cycles_per_issue"]]
    )  # fmt: skip
    has_faster = figures["tensor_single_warp_fraction"].to_numpy(dtype="float64") < 1
    narrow = tensor_operations(c) > 2 * np.nan_to_num(c["tensor_ops_fp64"])
    staged = c.total("shared_load_inst_warp", "shared_ldsm_inst_warp") > 0
    return np.asarray(has_faster & narrow & staged & (groups == 0) & has_tensor_work(c), dtype=np.bool_)


@np.errstate(all="ignore")
def by_warp_groups(c: Counts, figures: pd.DataFrame, times: pd.DataFrame, at_rate: Array) -> Array:
    """Return ``at_rate``, of shape (launches, units), for instructions of warp groups where those of single warps ran.

    ``times`` are the useful times at peak rates, a column per unit, ``at_rate`` those at the rates that units sustain.
    One instruction of a group stands for many, it reads its operands where they are, and tiles come as a whole: issue
    slots, L1 and shared memory need less time than the tensor pipe (`fixtures/tensor`). Special functions stand between
    two products, as in attention, so that one waits for the other.
    """
    single, units = uses_single_warps(c, figures), list(times)
    needed = at_rate.copy()
    tensor = units.index("tensor")
    needed[:, tensor] = at_rate[:, tensor] + np.where(single, times["xu"].fillna(0.0), 0.0)
    known = single & ~np.isnan(at_rate[:, tensor])
    for faster in (units.index("issue"), units.index("l1")):
        needed[:, faster] = np.where(known, 0.0, at_rate[:, faster])
    return needed


@once
def tensor_operations(c: Counts) -> Array:
    """Operations of all types, a multiply-add counting as 2; NaN where none was counted."""
    return c.total(*(f"tensor_ops_{kind}" for kind in TENSOR_TYPES))


@np.errstate(all="ignore")
def tensor_time(c: Counts, figures: pd.DataFrame) -> tuple[Array, NDArray[np.bool_]]:
    """Seconds that the operations need at the peak rate of their types, NaN where these are not known.

    Also returned is where some of them may have been sparse, which was not counted: they may need less time.
    """
    operations, sparse, peaks = (
        np.stack([part(kind) for kind in TENSOR_TYPES], axis=-1)
        for part in (
            lambda kind: c[f"tensor_ops_{kind}"],
            lambda kind: c[f"tensor_sparse_ops_{kind}"],
            lambda kind: figures[f"tensor_{kind}_peak_op_per_s"].to_numpy(dtype="float64"),
        )
    )
    factor = figures["tensor_sparsity_factor"].to_numpy(dtype="float64")
    factor = np.where(np.isnan(factor), 2.0, factor)
    seconds = matrix_time(operations, sparse, peaks, factor)
    can_be = np.isin(TENSOR_TYPES, ("fp64", "int1"), invert=True) & (factor[..., np.newaxis] > 1)
    return seconds, np.asarray((can_be & (operations > 0) & np.isnan(sparse)).any(axis=-1))
