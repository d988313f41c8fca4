"""Values that are loaded more than once: loads of four words for each lane are of threads with a tile in registers."""

import numpy as np
import pandas as pd

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.repeated_loads import word_by_word


def test_loads_of_one_word_may_be_redundant_and_those_of_four_not() -> None:
    each = [4.0, 64.0, 128.0, 320.0, 512.0, 600.0, np.nan]
    loads = pd.DataFrame({"global_load_bytes_requested": each, "global_load_inst_warp": 1.0})
    assert word_by_word(Counts(loads)).tolist() == [1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 1.0]


def test_no_loads_at_all_are_not_told_from_words() -> None:
    none = pd.DataFrame({"global_load_bytes_requested": [0.0], "global_load_inst_warp": [0.0]})
    assert word_by_word(Counts(none)).tolist() == [1.0]
