"""Access patterns: figures of the source, and counts of kernels with known strides on an H200."""

import pytest

from profsvc import store
from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate
from profsvc.views.calculators.catalog import CALCULATORS

PATTERN = CALCULATORS["pattern"]


def rows(**given):
    return calculate(PATTERN, given)["rows"]


def test_strides_on_sixteen_banks() -> None:
    found = rows(stride="1,2,8,17,0", lanes="16", banks="16", memory="shared")
    assert [row["bank_ways"] for row in found] == [1, 2, 8, 1, 1]


def test_a_column_of_doubles() -> None:
    (row,) = rows(stride="32", type="float64")
    assert (row["bank_ways"], row["wavefronts"], row["least_wavefronts"]) == (16, 32, 2)
    assert (row["sectors"], row["least_sectors"], row["bytes_used"]) == (32, 8, 0.25)
    (row,) = rows(stride="33", type="float64")
    assert (row["bank_ways"], row["wavefronts"]) == (1, 2)
    assert "a stride of 33 elements is free of conflicts" in calculate(PATTERN, {"stride": "32"})["notes"]


def test_old_devices_want_neighbours_in_order() -> None:
    given = {"lanes": "16", "segment": "64", "stride": "1", "memory": "global"}
    assert [rows(**given, rule=rule, offset="1")[0]["sectors"] for rule in ("strict", "relaxed")] == [16, 2]
    assert [rows(**given, rule=rule)[0]["sectors"] for rule in ("strict", "relaxed")] == [1, 1]


def test_rows_of_2048_bytes_meet_one_partition() -> None:
    found = rows(stride="512,576", memory="global", warps="1")
    assert [row["partition_load"] for row in found] == [8, 1]
    assert [row["partition_load"] for row in rows(stride="1,64", memory="global")] == [1, 1]


def test_chains_of_the_source_step_16384_elements() -> None:
    for loaded, operand, operation in [(128, 128, "multiply"), (8192, 8192, "add"), (8192, 2, "multiply")]:
        given = {"loaded": str(loaded), "operand": str(operand), "operation": operation}
        assert [row["stride"] for row in rows(**given)] == [16384]
    with pytest.raises(UsageError, match="belong together"):
        rows(loaded="5")
    with pytest.raises(UsageError, match=r"a stride of 1\.67772e\+07 elements; allowed"):
        rows(loaded=str(2**24), operand="1")


def test_structures_of_arrays_waste_nothing() -> None:
    soa, aos = rows(fields="4", memory="global")
    assert [(one["layout"], one["stride"], one["sectors"]) for one in (soa, aos)] == [
        ("structure of arrays", 1, 4), ("array of structures", 4, 16),
    ]  # fmt: skip


@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 32])
def test_an_h200_counts_what_the_pattern_says(demo, stride) -> None:
    """shared_conflict<n> and strided_copy read words n apart."""
    place = [1, 2, 4, 8, 16, 32].index(stride)
    (row,) = rows(stride=str(stride))
    counters = store.table(demo, "v1_counters", run_id=1).sort_values("launch_id")
    conflicts = counters.iloc[23 + place]
    measured = conflicts["shared_wavefronts_sass"] / conflicts["shared_wavefronts_ideal"]
    assert measured == pytest.approx(row["bank_ways"], rel=0.002)
    assert counters.iloc[8 + place]["global_load_sectors_per_request"] == pytest.approx(row["sectors"], rel=0.002)
