"""What accesses of memory bring that no value needs: bytes beside the values, narrow words, places that come again.

What only another algorithm could avoid is needed: sectors of accesses to unrelated places.
"""

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts, counted_share
from profsvc.formulas.performance.avoidable_work import single_sector_share

Array = NDArray[np.float64]
SECTOR_BYTES = 32
SECTORS_PER_LINE = 4
# Hits of L2 below this share are those of instructions and constants.
MIN_RETURNS = 0.01
# 32 lanes at random places of shared memory take 3.5 passes, one for nine of them.
PLACES_PER_WAVEFRONT = 9.0
# Half of the loads are of the indices, and each load takes less than three integer instructions.
MOST_GATHERS, MOST_INTEGERS_PER_LISTED_PLACE = 0.55, 3.0


@np.errstate(all="ignore")
def lookup_wavefronts(c: Counts) -> Array:
    """Wavefronts of lookups at random places: of tables in constant memory, were they in shared memory, and of those.

    Of the latter those beyond the wavefronts of adjacent data.
    """
    diverged = np.clip(np.nan_to_num(c["constant_idc_requests"] - c["constant_ldc_inst_warp"]), 0, None)
    return np.asarray(diverged / PLACES_PER_WAVEFRONT + np.nan_to_num(c["shared_lookup_wavefronts"]), dtype=np.float64)


@np.errstate(all="ignore")
def narrow_share(c: Counts) -> Array:
    """Share of the memory instructions that words would spare accesses of 8 and 16 bits; 0 where not counted."""
    words = [c[f"memory_inst_{bits}bit_warp"] for bits in (8, 16, 32, 64, 128)]
    return counted_share(0.75 * words[0] + 0.5 * words[1], np.nansum(words, axis=0))


@np.errstate(all="ignore")
def unrelated_places(c: Counts) -> Array:
    """Share of the sectors of loads that hold one value that is wanted, and none that other lanes want.

    L1 asks L2 for them one at a time. If DRAM brought just the bytes that were requested, each once, then the sectors
    that L2 sent again hold values that belong together, as the columns of a matrix do. Strides of a line or more also
    take sectors one at a time, but none of them comes back.
    """
    # Places that follow from the indices of threads lie in a layout, which can be another.
    known = c["global_load_regular_excess_fraction"]
    regular = np.where(np.isnan(known), ~_may_come_back(c), known)
    single, used_once = _of_single_sectors(c)
    return np.asarray(single * (1 - used_once) * (1 - regular), dtype=np.float64)


def _may_come_back(c: Counts) -> NDArray[np.bool_]:
    """Whether L2 found sectors again, or did not count it."""
    return np.asarray(~(c["l2_read_hit_fraction"] <= MIN_RETURNS), dtype=np.bool_)


@np.errstate(all="ignore")
def looked_up(c: Counts) -> Array:
    """Share of the sectors of loads at places of a table that values determine, and of which others are wanted too.

    0 where machine code does not tell the places. No layout brings them closer, but a cache that holds the table does.
    """
    by_values = np.clip(1 - c["global_load_regular_excess_fraction"], 0, 1)
    single, used_once = _of_single_sectors(c)
    return np.nan_to_num(by_values * (1 - single) * (1 - used_once))


@np.errstate(all="ignore")
def looks_up_tables(c: Counts) -> NDArray[np.bool_]:
    """Whether more of what values gather is of tables than at places that have nothing to do with each other."""
    return np.asarray(looked_up(c) > unrelated_places(c), dtype=np.bool_)


@np.errstate(all="ignore")
def _of_single_sectors(c: Counts) -> tuple[Array, Array]:
    """Share of the sectors of loads that L1 asks L2 for one at a time, and of those that DRAM brought once for all."""
    stored = np.nan_to_num(c["global_store_sectors"])
    rows = np.fmin(stored, np.nan_to_num(c["global_store_bytes_requested"]) / SECTOR_BYTES)
    # Stores of whole rows fill their lines; what others scatter looks like what the loads gather.
    requests = np.clip(c["l2_tex_requests"] - rows / SECTORS_PER_LINE, 0, None)
    sectors = c["l2_tex_read_sectors"] + stored - rows
    # Whole rows among the loads, four sectors for each request, are read once; the rest of the bytes is of the others.
    whole = SECTOR_BYTES * c["l2_tex_read_sectors"] * np.clip(4 / 3 * (1 - requests / sectors), 0, 1)
    asked, brought = (np.clip(c[name] - whole, 0, None) for name in ("global_load_bytes_requested", "dram_read_bytes"))
    used_once = np.nan_to_num(np.fmin(asked, brought) / np.fmax(asked, brought))
    # Where the place of a load is the value of the load before, no layout brings it closer to others.
    used_once = used_once * (1 - counted_share(c["global_load_chained_inst_warp"], c["global_load_inst_warp"]))
    return single_sector_share(sectors, requests), used_once


@np.errstate(all="ignore")
def unrelated_stores(c: Counts) -> Array:
    """Share of the sectors of stores beyond the ideal that hold values at unrelated places; 0 where not known.

    A value of memory or a hash function determines these places. Values of several stores that lie together meet in L2
    before DRAM has them: where DRAM gets just the bytes that were stored, a block could order its values before.
    """
    stored, written = c["global_store_bytes_requested"], c["dram_write_bytes"]
    together = np.nan_to_num(np.fmin(stored, written) / np.fmax(stored, written))
    return np.clip(np.nan_to_num(1 - c["global_store_regular_excess_fraction"]), 0, 1) * (1 - together)


@np.errstate(all="ignore")
def gathered_from_dram(c: Counts) -> Array:
    """Share of the bytes that DRAM brought for loads of unrelated places.

    Sectors of a regular stride are asked for once. Where L2 finds some of them again, they are places that come back;
    and where the machine code is known, it tells the strides.
    """
    comes_back = np.nan_to_num(c["l2_read_hit_fraction"]) > MIN_RETURNS
    comes_back |= ~np.isnan(c["global_load_regular_excess_fraction"])
    local, loaded = (np.nan_to_num(c[f"{kind}_load_sectors"]) for kind in ("local", "global"))
    gathered = comes_back & ~has_listed_places(c)
    return np.where(gathered, unrelated_places(c) * counted_share(loaded, loaded + local), 0.0)


@np.errstate(all="ignore")
def has_listed_places(c: Counts) -> NDArray[np.bool_]:
    """Whether places that loads gather from stand in a list, whose order is free.

    For each of them an index is loaded, in rows, and multiplied and added to an address; a place that is computed, as
    by a hash function, takes more integer instructions or no load.
    """
    loads = np.nan_to_num(c["global_load_inst_warp"])
    gathers = (c["global_load_sectors_per_request"] - SECTORS_PER_LINE) / (32 - SECTORS_PER_LINE)
    integers = c["inst_integer_thread"] / (32 * loads)
    return np.asarray((gathers < MOST_GATHERS) & (integers < MOST_INTEGERS_PER_LISTED_PLACE), dtype=np.bool_)


@np.errstate(all="ignore")
def unused_of_l2_loads(c: Counts) -> Array:
    """Share of the bytes that L2 sent to L1 which neither a load requested nor local memory holds."""
    sent = SECTOR_BYTES * c["l2_tex_read_sectors"] - np.nan_to_num(local_bytes(c)[0])
    return np.clip(np.nan_to_num(1 - c["global_load_bytes_requested"] / sent), 0, 1)


@np.errstate(all="ignore")
def local_bytes(c: Counts) -> tuple[Array, Array]:
    """Bytes of local memory that loads brought from L2 and that stores may have sent there; NaN where not counted."""
    missed = 1 - np.clip(np.nan_to_num(c["local_load_l1_hit_fraction"]), 0, 1)
    return SECTOR_BYTES * c["local_load_sectors"] * missed, SECTOR_BYTES * c["local_store_sectors"]
