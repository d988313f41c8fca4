"""Values that are loaded more than once: by the same SM, for other blocks, or by the same thread."""

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts

Array = NDArray[np.float64]
MIN_BLOCKS_PER_PLACE = 2.0
# Bytes of a load of the lanes of a warp, of one word each and of four, the most that there are.
WORDS_BYTES, WIDEST_BYTES = 128.0, 512.0


@np.errstate(all="ignore")
def word_by_word(c: Counts) -> Array:
    """Share of the loads that bring a word to each lane, and not four; 1 where not known.

    Threads that load four words at once have a tile of values in registers already, and use each of them several times.
    """
    each = c["global_load_bytes_requested"] / c["global_load_inst_warp"]
    share = (WIDEST_BYTES - each) / (WIDEST_BYTES - WORDS_BYTES)
    return np.asarray(np.clip(np.nan_to_num(share, nan=1.0), 0, 1), dtype=np.float64)


@np.errstate(all="ignore")
def reloaded_share(c: Counts, sms: Array) -> Array:
    """Share of the loaded bytes that the same SM loaded before, at least: it loads more than DRAM brought for all."""
    return np.clip(np.nan_to_num(1 - sms * c["dram_read_bytes"] / c["global_load_bytes_requested"]), 0, 1)


@np.errstate(all="ignore")
def loaded_by_several_blocks(c: Counts) -> Array:
    """Share of the bytes that DRAM read which it read before for another block, at least; 0 where not known.

    Places that depend on a part of the block index alone are those of two blocks or more: if these ran at one
    time, L2 would have half of the bytes or more for the second.
    """
    asked = c["global_load_bytes_requested"]
    shared = np.minimum(c["global_load_shared_place_bytes"], asked)
    again = np.fmin(c["dram_read_bytes"], asked) - (asked - shared) - shared / MIN_BLOCKS_PER_PLACE
    return np.clip(np.nan_to_num(again / c["dram_read_bytes"]), 0, 1)


@np.errstate(all="ignore")
def read_again(c: Counts) -> Array:
    """Share of the bytes that DRAM read for what it read before, at least; 0 where not known.

    Either for another block, or for the same thread, which loads a place again after it left the caches.
    """
    by_thread = np.fmin(1 - c["global_load_distinct_bytes"] / c["dram_read_bytes"], c["global_load_again_fraction"])
    return np.asarray(np.fmax(loaded_by_several_blocks(c), np.clip(np.nan_to_num(by_thread), 0, 1)), dtype=np.float64)


@np.errstate(all="ignore")
def evicted_share(c: Counts) -> Array:
    """Share of the loads that the same thread loaded before and L1 does not have any more, at least; 0 if not known."""
    again, hits = (np.nan_to_num(c[f"global_load_{name}_fraction"]) for name in ("again", "l1_hit"))
    return np.asarray(np.clip(again - hits, 0, 1), dtype=np.float64)


@np.errstate(all="ignore")
def evicted_of_misses(c: Counts) -> Array:
    """Share of what L2 sends to L1 that the same thread loaded before, at least; 0 if not known."""
    hits = np.clip(np.nan_to_num(c["global_load_l1_hit_fraction"]), 0, 1)
    return np.clip(np.nan_to_num(evicted_share(c) / (1 - hits)), 0, 1)
