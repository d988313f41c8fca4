"""What arrays in local memory cost beside their accesses, by how the places in them are determined.

`profsvc.analysis.source_code.local_arrays` tells these from machine code.
"""

import numpy as np
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts, counted_share

Array = NDArray[np.float64]
# An index is kept inside its array, scaled, and added to where the array begins.
PLACE_LENGTH = 3.0


def valued_share(c: Counts) -> Array:
    """Share of the accesses of local memory at places that values determine, in no register; 0 if not known."""
    return np.nan_to_num(c["local_valued_place_fraction"])


@np.errstate(all="ignore")
def unrolled_instructions(c: Counts, overhead: float) -> Array:
    """Instructions of threads that go once the loops through arrays are unrolled, and these are in registers.

    ``overhead``: integer, bit and branch instructions that a tuned kernel needs for each other one. Where the loops
    have no other ones, these are what they compute: 0.
    """
    others = np.nan_to_num(c["inst_local_loop_others_thread"])
    spared = np.clip(np.nan_to_num(c["inst_local_loop_overhead_thread"]) - overhead * others, 0, None)
    spared = spared + np.nan_to_num(c["inst_local_indexed_thread"])
    return np.asarray(np.where(others > 0, spared, 0.0), dtype=np.float64)


@np.errstate(all="ignore")
def address_share(c: Counts) -> Array:
    """Share of the integer and bit instructions that compute addresses of arrays which could be in registers."""
    addresses = PLACE_LENGTH * np.nan_to_num(c["inst_local_indexed_thread"])
    return counted_share(addresses, c.total("inst_integer_thread", "inst_bit_thread"))
