"""Balance laws, the growth of the cache, and the near field: figures of the source and what must hold."""

import pytest

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

BALANCE, GROWTH, NEAR = (CALCULATORS[name] for name in ("balance", "cache-growth", "near-field"))
MACHINE = {"cores": "10", "core_rate": "100e9", "bandwidth": "100 GB/s", "fast_memory": "64 kB"}


def rows(model, **values):
    return calculate(model, values)["rows"]


def test_slack_is_computation_over_memory_time() -> None:
    for row in rows(BALANCE, n="4096", latency="600 ns", **MACHINE):
        assert row["slack"] == pytest.approx(row["computation_s"] / row["memory_s"])
        assert row["bound"] == ("computation" if row["slack"] >= 1 else "memory")


def test_changes_of_the_machine_do_what_the_source_says() -> None:
    found = {row["change"]: row for row in rows(BALANCE, n="4096", latency="1 us", **MACHINE)}
    base = found["as it is"]
    assert base["transfers"] / found["fast memory x2"]["transfers"] == pytest.approx(2**0.5)
    assert base["transfers"] / found["line x2"]["transfers"] == pytest.approx(2)
    assert found["bandwidth x2"]["kung_slack"] == pytest.approx(2 * base["kung_slack"])
    assert found["cores x2"]["kung_slack"] == pytest.approx(base["kung_slack"] / 2)
    assert found["latency x2"]["kung_slack"] == base["kung_slack"]
    assert found["latency x2"]["slack"] < base["slack"] < base["kung_slack"]


def test_fast_memory_that_is_needed_balances_the_product() -> None:
    view = calculate(BALANCE, {"n": "4096", **MACHINE})
    (words,) = [note for note in view["notes"] if "that Kung's balance needs" in note]
    needed = float(words.split("needs: ")[1].split(" KiB")[0]) * 1024
    balanced = rows(BALANCE, n="4096", **MACHINE | {"fast_memory": f"{needed:.6g}"})
    assert balanced[0]["kung_slack"] == pytest.approx(1, rel=1e-3)


def test_cache_grows_with_the_square_of_the_speedup() -> None:
    first, second = rows(GROWTH, devices="H200", faster="1,2")
    assert second["matrix_product_kib"] == pytest.approx(4 * first["matrix_product_kib"])
    assert second["near_field_kib"] == pytest.approx(2 * first["near_field_kib"])
    assert first["near_field_kib"] == pytest.approx(8 * 4 * first["near_field_points"] / 1024)
    assert first["machine_balance"] == pytest.approx(2 * 132 * 128 * 1.98e9 / 4.814304e12 * 4)


def test_what_does_not_fit_is_said() -> None:
    for values, said in (
        ({}, "cores, core_rate, bandwidth, fast_memory: missing"),
        (MACHINE, "n is missing"),
        ({"algorithm": "given", **MACHINE}, "work, depth, traffic: missing"),
        ({"device": "H2000", "n": "8"}, "no device named 'H2000'"),
    ):
        with pytest.raises(Exception, match=said):
            calculate(BALANCE, values)
    with pytest.raises(UsageError, match="has no units for words of 8 B"):
        calculate(GROWTH, {"devices": "8800GTX", "word": "8"})


def test_near_and_far_field_cost_the_same_where_their_sum_is_least() -> None:
    given = {"translation": "20000"}
    (note,) = [note for note in calculate(NEAR, given)["notes"] if "cost the same" in note]
    best = (189 * 20000 / (27 * 11)) ** 0.5
    assert f"{best:.0f} points" in note
    lower, at, upper = rows(NEAR, points=f"{best / 1.1},{best},{best * 1.1}", **given)
    assert at["near_flop"] == pytest.approx(at["far_flop"])
    assert at["both_flop"] < min(lower["both_flop"], upper["both_flop"])
