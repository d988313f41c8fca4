"""The anti-parallel patterns: measured ratios of kernels that are made to have them, and why some are not known."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from profsvc import pipeline, specs, store
from profsvc.errors import NotFoundError
from profsvc.reports.rows import plain
from profsvc.reports.text.models import antipatterns as text
from profsvc.views.models.antipatterns import antipatterns, patterns_of_launch

FIXTURES = Path(__file__).parents[3] / "fixtures"


def row_of(engine, run, kernel, pattern):
    (row,) = [row for row in antipatterns(engine, run, kernel)["rows"] if row["pattern"] == pattern]
    return row


def test_every_pattern_of_the_catalogue_has_a_row(demo):
    for kernel in (None, "saxpy"):
        view = antipatterns(demo, "h200", kernel)
        assert [row["pattern"] for row in view["rows"]] == list(specs.patterns())
        for row in view["rows"]:
            assert (row["lost_share"] is None) == (row["ratio"] is None) == bool(row["reason"])
            assert row["lost_share"] is None or 0 <= row["lost_share"] <= 1
        json.dumps(plain(view))


@pytest.mark.parametrize(("index", "ways"), [(23, 1), (24, 2), (25, 4), (26, 8), (27, 16), (28, 32)])
def test_bank_conflicts_of_known_degree(demo, index, ways):
    row = row_of(demo, "h200", str(index), "banks")
    assert row["ratio"] == pytest.approx(ways, rel=0.005)
    assert row["lost_share"] == pytest.approx(1 - 1 / row["ratio"])


@pytest.mark.parametrize(("index", "sectors"), [(8, 4), (9, 8), (10, 16), (11, 32)])
def test_sectors_of_known_strides(demo, index, sectors):
    """Half of the accesses, the stores, are coalesced: 4 sectors of 32 bytes for the 128 that a warp asks for."""
    assert row_of(demo, "h200", str(index), "coalescing")["ratio"] == pytest.approx((4 + sectors) / 8)


def test_loops_of_unequal_length_are_measured_at_their_branches(flawed, demo):
    unequal, equal = (row_of(flawed, "flaws", str(index), "trip_counts") for index in (34, 24))
    assert unequal["ratio"] == pytest.approx(0.19, abs=0.01)
    assert equal["ratio"] == 1
    assert "no source page of the launch" in row_of(demo, "h200", "saxpy", "trip_counts")["reason"]


def test_atomics_on_few_addresses_load_one_part_of_the_memory(flawed):
    hot, spread = (row_of(flawed, "flaws", kernel, "partitions") for kernel in ("segments_a", "segments_b"))
    assert hot["ratio"] > 10 > spread["ratio"]
    assert hot["saving_fraction"] > 0.5


def test_shares_of_a_run_are_means_by_time(demo):
    frame = store.table(demo, "v1_models", run_id=1, model="antiparallel", quantity="banks")
    times = store.table(demo, "v1_launches", run_id=1).set_index("launch_id")["duration_ns"]
    mean = np.average(frame["value"], weights=times.loc[frame["launch_id"]])
    row = row_of(demo, "h200", None, "banks")
    assert row["lost_share"] == pytest.approx(mean)
    assert row["kernel"] == "shared_conflict"


def test_what_is_not_counted_is_named_with_how_to_collect_it(engine):
    details = FIXTURES / "flaws" / "ncu_details.csv.gz"
    with gzip.open(details) as stream:
        pipeline.ingest(engine, stream, "details.csv", store.RunInfo(name="pages"))
    row = row_of(engine, "pages", "hash_a", "partitions")
    assert row["ratio"] is None
    assert "the export has no l2_sectors_max, l2_sectors_avg; collect with: ncu --metrics" in row["reason"]
    stored = store.select(engine, "v1_models", model="antiparallel", quantity="partitions", value=None)
    assert {one["reason"] for one in stored} == {row["reason"]}
    page = text.page(antipatterns(engine, "pages", "hash_a"), 100)
    assert "Partition camping is unknown: the export has no" in page
    assert "Low occupancy" in page


def test_a_run_without_counters_is_refused(engine):
    with (FIXTURES / "nvprof" / "gpu_trace.csv").open("rb") as stream:
        pipeline.ingest(engine, stream, "trace.csv", store.RunInfo(name="trace"))
    with pytest.raises(NotFoundError, match="no launches with counters"):
        antipatterns(engine, "trace")


PATTERN_OF_FLAW = {
    "uncoalesced_loads": "coalescing", "uncoalesced_stores": "coalescing", "bank_conflicts": "banks",
    "contended_global_atomics": "partitions", "thread_divergence": "divergence", "partly_filled_warps": "divergence",
    "barriers": "barriers", "serial_section": "barriers", "warp_imbalance": "barriers",
    "grid_too_small": "parallelism", "tail_wave": "parallelism", "occupancy_shared_memory": "occupancy",
    "occupancy_registers": "occupancy", "dependent_instructions": "dependent_instructions",
    "few_loads_in_flight": "dependent_accesses",
}  # fmt: skip


def test_a_kernel_with_a_flaw_loses_more_of_its_pattern_than_the_mended_one(flawed):
    launches = {row["launch_index"]: row for row in store.longest_launches(flawed, 1, None)[0]}
    worse = {}
    with (FIXTURES / "flaws" / "cases.csv").open(newline="") as file:
        for case in csv.DictReader(file):
            if case["variant"] == "a" and case["flaw"] in PATTERN_OF_FLAW:
                key, index = PATTERN_OF_FLAW[case["flaw"]], int(case["launch"])
                both = [patterns_of_launch(flawed, launches[number]) for number in (index, index + 1)]
                bad, good = ({row["pattern"]: row["lost_share"] for row in rows}[key] for rows in both)
                worse[case["work"]] = bad > good + 0.005
    assert len(worse) == 22
    assert [work for work, more in worse.items() if not more] == ["checksum"]
