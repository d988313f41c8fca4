"""What global accesses asked of a cache, and what it moved for them: of the same accesses on both sides.

Global memory is reached by loads and stores of the lanes, by asynchronous copies to shared memory (which tools count
among the loads) and by bulk copies (TMA), which move whole sectors and pass no tags. Local memory, textures and atomics
share the way to L2, but nobody counts what they ask for: they are on neither side.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counts import Counts
from profsvc.analysis.useful_time import copies_without_size, local_bytes

Array = NDArray[np.float64]
L1_LINE_BYTES = 128
L2_SECTOR_BYTES = 32
NO_SIZE = "the export does not count the bytes of asynchronous copies (global_ldgsts_bytes_requested)"
NO_BULK = "the export does not count the bytes of bulk copies (tma_load_bytes, tma_store_bytes)"
OTHERS = "most bytes between L1 and L2 are of accesses whose size nobody counted: bulk copies, textures or atomics"


class Traffic(NamedTuple):
    """Bytes asked for and moved, the part of the traffic of the cache that they are, and why nothing can be said."""

    asked: Array
    moved: Array
    part: Array
    unseen: NDArray[np.object_]


@np.errstate(all="ignore")
def traffic_of_l1(c: Counts) -> Traffic:
    """Lines that global accesses looked up, and what they asked for."""
    bulk = np.nan_to_num(c.total("tma_load_bytes", "tma_store_bytes"))
    asked = _plain(c) + np.nan_to_num(c["global_store_bytes_requested"]) + bulk
    moved = L1_LINE_BYTES * c["l1_tag_requests_global"] + bulk
    return _known(c, asked, moved, np.ones_like(moved), np.zeros(moved.shape, dtype=np.bool_))


@np.errstate(all="ignore")
def traffic_of_l2(c: Counts) -> Traffic:
    """Sectors that global accesses took to or from L2, and what they asked for of it."""
    bulk = np.nan_to_num(c.total("tma_load_bytes", "tma_store_bytes"))
    loads, stores = (L2_SECTOR_BYTES * c[name] for name in ("global_load_l1_miss_sectors", "global_store_sectors"))
    # A hit in L1 is another byte of a sector that came before, or the same once more; no counter tells, and all are
    # taken as others: no byte is called unused that may have been used. Loads and stores each on their own.
    stored = np.nan_to_num(np.fmin(c["global_store_bytes_requested"], stores))
    asked = np.where(np.isnan(loads), _plain(c), np.minimum(_plain(c), loads)) + stored + bulk
    local = np.nan_to_num(sum(local_bytes(c)))
    all_of_l1 = np.clip(L2_SECTOR_BYTES * c["l2_tex_sectors"] - local, 0, None)
    moved = np.where(np.isnan(loads), all_of_l1, loads + np.nan_to_num(stores) + bulk)
    crossed = c.total("l2_to_l1_read_bytes", "l1_to_l2_write_bytes")
    part = np.where(crossed > 0, np.clip(moved / crossed, 0.0, 1.0), 1.0)
    return _known(c, np.fmin(asked, moved), moved, part, crossed - local > 2 * moved)


def _plain(c: Counts) -> Array:
    """Bytes that loads and asynchronous copies asked for."""
    return np.asarray(c["global_load_bytes_requested"] + np.nan_to_num(c["global_ldgsts_bytes_requested"]))


def _known(c: Counts, asked: Array, moved: Array, part: Array, is_minor: NDArray[np.bool_]) -> Traffic:
    """Take away what cannot be known, with the reason; ``is_minor``: most of the traffic is of something else."""
    bulk_copies = c.total("tma_load_inst_warp", "tma_store_inst_warp")
    lacks_bulk = (bulk_copies > 0) & np.isnan(c.total("tma_load_bytes", "tma_store_bytes"))
    nothing = np.full(asked.shape, None, dtype=object)
    others = np.where(is_minor, OTHERS, nothing)
    unseen = np.where(copies_without_size(c), NO_SIZE, np.where(lacks_bulk, NO_BULK, others))
    none = ~pd.isna(unseen)
    return Traffic(np.where(none, np.nan, asked), np.where(none, np.nan, moved), part, unseen)
