"""Launches that do work which a model has no term for: of them it must not answer at all."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.tensor_work import has_tensor_work

# Models whose terms are instructions of a warp: each issues once, and its memory requests are those of its lanes.
WARP_MODELS = ("mwp_cwp", "benefit", "latency_hiding")
# A warp instruction asks for no more than a sector of 32 bytes a lane: of at most 16 bytes each, and aligned to them.
MAX_REQUEST_BYTES = 32 * 32
REQUEST_COUNTERS = ("global_load_inst_warp", "global_store_inst_warp", "local_load_inst_warp", "local_store_inst_warp",
            "global_reduction_inst_warp", "global_atomic_inst_warp", "global_ldgsts_inst_warp")  # fmt: skip
NO_MATRIX_COST = "the model has no cost for matrix instructions"
NO_BULK_COPIES = "the model does not cover bulk copies (TMA), which move a whole tile per instruction"
UNEXPLAINED_TRAFFIC = "more bytes moved between L1 and L2 than the counted memory instructions can request"


@np.errstate(all="ignore")
def unseen_work_reasons(c: Counts) -> Mapping[str, NDArray[np.object_]]:
    """Return for some models the reason of each launch whose work they cannot see, None of the others."""
    bulk = c.total("tma_load_bytes", "tma_store_bytes")
    has_bulk = (c.total("tma_load_inst_warp", "tma_store_inst_warp") > 0) | (bulk > 0)
    crossed = c.total("l2_to_l1_read_bytes", "l1_to_l2_write_bytes")
    beyond = crossed > MAX_REQUEST_BYTES * c.total(*REQUEST_COUNTERS) + np.nan_to_num(bulk)
    nothing = np.full(beyond.shape, None, dtype=object)
    others = np.where(beyond, UNEXPLAINED_TRAFFIC, nothing)
    of_warps = np.where(has_tensor_work(c), NO_MATRIX_COST, np.where(has_bulk, NO_BULK_COPIES, others))
    return {**dict.fromkeys(WARP_MODELS, of_warps), "throughput": others}
