"""Hit ratios over cache sizes: reuse that fits, reuse that does not, and two levels."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

MODEL = CALCULATORS["cache-sizes"]


def rows(trace, **values):
    return calculate(MODEL, {"trace": "block,warp,address,store,epoch\n" + "\n".join(trace), **values})["rows"]


def loop(lines: int, times: int, block: int = 0) -> list[str]:
    return [f"{block},0,{128 * (1000 * block + line)},0,0" for _ in range(times) for line in range(lines)]


def test_a_loop_hits_where_it_fits_and_never_where_it_does_not() -> None:
    found = rows(loop(16, 4), sizes="1,2,4", ways="8")
    assert [row["hit_ratio"] for row in found] == pytest.approx([0, 0.75, 0.75])
    assert all(row["p05"] == row["p95"] for row in found)  # one warp leaves no order to draw
    assert all(row["l2_hit_ratio"] is None for row in found)


def test_blocks_compete_for_a_cache_in_any_order() -> None:
    found = rows([*loop(16, 4), *loop(16, 4, 1)], sizes="2,4", ways="16")
    assert found[0]["p05"] < found[0]["hit_ratio"] < 0.75
    assert found[1]["hit_ratio"] == pytest.approx(0.75)


def test_an_l2_answers_what_the_cache_misses() -> None:
    small, large = rows(loop(16, 4), sizes="1,4", ways="8", l2="64")
    assert (small["l2_hit_ratio"], small["dram_kib"]) == pytest.approx((0.75, 2))
    assert (large["l2_hit_ratio"], large["dram_kib"]) == pytest.approx((0, 2))


def test_a_cache_without_a_set_is_refused() -> None:
    with pytest.raises(UsageError, match=r"sizes: 1 KiB is less than one set of 16 lines of 128 B"):
        rows(loop(2, 2), sizes="1")
    with pytest.raises(UsageError, match="make 20000000 references to simulate; allowed: 10000000"):
        rows(loop(20, 10), sizes="4:503", orders="200")
