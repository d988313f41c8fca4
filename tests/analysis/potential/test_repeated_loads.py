"""Values that are loaded more than once: loads of four words for each lane are of threads with a tile in registers."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.repeated_loads import evicted_of_misses, word_by_word


def test_loads_of_one_word_may_be_redundant_and_those_of_four_not() -> None:
    each = [4.0, 64.0, 128.0, 320.0, 512.0, 600.0, np.nan]
    loads = pd.DataFrame({"global_load_bytes_requested": each, "global_load_inst_warp": 1.0})
    assert word_by_word(Counts(loads)).tolist() == [1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 1.0]


def test_no_loads_at_all_are_not_told_from_words() -> None:
    none = pd.DataFrame({"global_load_bytes_requested": [0.0], "global_load_inst_warp": [0.0]})
    assert word_by_word(Counts(none)).tolist() == [1.0]


@pytest.mark.parametrize(
    ("again", "hits", "share"), [(0.8, 0.5, 0.6), (0.9, 0.0, 0.9), (0.4, 0.5, 0.0), (1.0, 1.0, 0.0)]
)
def test_what_a_thread_loads_again_and_l1_has_not_crosses_l2_again(again: float, hits: float, share: float) -> None:
    loads = {"global_load_again_fraction": again, "global_load_l1_hit_fraction": hits}
    assert evicted_of_misses(Counts(pd.DataFrame([loads]))) == pytest.approx(share)
