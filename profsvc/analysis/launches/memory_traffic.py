"""Bytes that global accesses requested from a cache, and bytes that the cache moved for the same accesses.

Global memory is reached by loads and stores of the lanes, by asynchronous copies to shared memory (which tools count
among the loads) and by bulk copies (TMA), which move whole sectors and pass no tags. Local memory, textures and atomics
share the path to L2, but their requested bytes are not counted: they are on neither side.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.access_patterns import local_bytes
from profsvc.analysis.potential.useful_time import has_copies_without_size

Array = NDArray[np.float64]
L1_LINE_BYTES = 128
L2_SECTOR_BYTES = 32
NO_COPY_SIZE = "the export does not count the bytes of asynchronous copies (global_ldgsts_bytes_requested)"
NO_BULK_SIZE = "the export does not count the bytes of bulk copies (tma_load_bytes, tma_store_bytes)"
MOSTLY_UNCOUNTED = "most L1-L2 traffic comes from accesses of uncounted size: bulk copies, textures or atomics"


class Traffic(NamedTuple):
    """Bytes asked for and moved, the part of the traffic of the cache that they are, and why nothing can be said."""

    asked: Array
    moved: Array
    part: Array
    unseen: NDArray[np.object_]


@np.errstate(all="ignore")
def l1_traffic(c: Counts) -> Traffic:
    """Lines that global accesses looked up, and what they asked for."""
    bulk = np.nan_to_num(c.total("tma_load_bytes", "tma_store_bytes"))
    asked = _load_bytes_requested(c) + np.nan_to_num(c["global_store_bytes_requested"]) + bulk
    moved = L1_LINE_BYTES * c["l1_tag_requests_global"] + bulk
    return _checked_traffic(c, asked, moved, np.ones_like(moved), np.zeros(moved.shape, dtype=np.bool_))


@np.errstate(all="ignore")
def l2_traffic(c: Counts) -> Traffic:
    """Sectors that global accesses took to or from L2, and what they asked for of it."""
    bulk = np.nan_to_num(c.total("tma_load_bytes", "tma_store_bytes"))
    loads, stores = (L2_SECTOR_BYTES * c[name] for name in ("global_load_l1_miss_sectors", "global_store_sectors"))
    # A hit in L1 is another byte of a sector that came before, or the same once more; no counter tells, and all are
    # taken as others: no byte is called unused that may have been used. Loads and stores each on their own.
    stored = np.nan_to_num(np.fmin(c["global_store_bytes_requested"], stores))
    asked = (
        np.where(np.isnan(loads), _load_bytes_requested(c), np.minimum(_load_bytes_requested(c), loads)) + stored + bulk
    )
    local = np.nan_to_num(sum(local_bytes(c)))
    all_of_l1 = np.clip(L2_SECTOR_BYTES * c["l2_tex_sectors"] - local, 0, None)
    moved = np.where(np.isnan(loads), all_of_l1, loads + np.nan_to_num(stores) + bulk)
    crossed = c.total("l2_to_l1_read_bytes", "l1_to_l2_write_bytes")
    part = np.where(crossed > 0, np.clip(moved / crossed, 0.0, 1.0), 1.0)
    return _checked_traffic(c, np.fmin(asked, moved), moved, part, crossed - local > 2 * moved)


def _load_bytes_requested(c: Counts) -> Array:
    """Bytes that loads and asynchronous copies asked for."""
    return np.asarray(c["global_load_bytes_requested"] + np.nan_to_num(c["global_ldgsts_bytes_requested"]))


def _checked_traffic(c: Counts, asked: Array, moved: Array, part: Array, is_minor: NDArray[np.bool_]) -> Traffic:
    """Replace unknown values by NaN with the reason; ``is_minor``: most of the traffic is of something else."""
    bulk_copies = c.total("tma_load_inst_warp", "tma_store_inst_warp")
    lacks_bulk = (bulk_copies > 0) & np.isnan(c.total("tma_load_bytes", "tma_store_bytes"))
    nothing = np.full(asked.shape, None, dtype=object)
    others = np.where(is_minor, MOSTLY_UNCOUNTED, nothing)
    unseen = np.where(has_copies_without_size(c), NO_COPY_SIZE, np.where(lacks_bulk, NO_BULK_SIZE, others))
    none = ~pd.isna(unseen)
    return Traffic(np.where(none, np.nan, asked), np.where(none, np.nan, moved), part, unseen)
