"""What was simulated of a memory trace: written, written again, read for a run, and gone with its file."""

from typing import Any

import pytest

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.formulas.numerics.flags import Flag
from profsvc.tables import Batch
from tests.store.conftest import info

ABOUT: dict[str, Any] = {
    "kernel": "k", "device": "d", "references_read": 9, "lines": 8, "blocks": 2, "blocks_left_out": 1, "draws": 2,
    "sms": 4, "slots": 3, "l1_sets": 2, "l1_ways": 1, "l2_sets": 5, "l2_ways": 6, "line_bytes": 128,
    "flags": int(Flag.EXTRAPOLATED), "version": "1",
}  # fmt: skip
NAN = float("nan")
DRAWS = [(0.5, NAN, 0.25, 1.0, 7.0), (0.75, NAN, 0.5, 0.0, 6.0)]
SITES = [("a.cu:3", 5, 1.5, 0.5, NAN), ("b", 4, 1.0, NAN, 0.25)]


def put(engine, content):
    store.write_upload(engine, info(content, form="memory-trace"), store.RunInfo(name="r"), [Batch(lines_stored=1)])


def test_what_is_written_is_read(engine):
    put(engine, "a")
    store.save_trace(engine, 1, {**ABOUT, "draws": 9}, DRAWS * 2, SITES * 2)
    store.save_trace(engine, 1, ABOUT, DRAWS, SITES)
    (found,) = store.traces_of_run(engine, 1)
    assert found.about == {**ABOUT, "upload_id": 1, "run_id": 1, "flags": "EXTRAPOLATED", "reason": None}
    names = ("draw", "l1_load_ratio", "l1_store_ratio", "l2_load_ratio", "l2_store_ratio", "dram_lines")
    assert [[draw[name] for name in names] for draw in found.draws] == [
        [0, 0.5, None, 0.25, 1.0, 7.0],
        [1, 0.75, None, 0.5, 0.0, 6.0],
    ]
    sites = store.select(engine, "v1_trace_sites", run_id=1)
    columns = ("kernel", "site", "requests", "lines_per_request", "l1_ratio", "l2_ratio")
    assert sorted([site[name] for name in columns] for site in sites) == [
        ["k", "a.cu:3", 5, 1.5, 0.5, None],
        ["k", "b", 4, 1.0, None, 0.25],
    ]


def test_a_trace_goes_with_its_file_and_stays_with_its_run(engine):
    put(engine, "a")
    put(engine, "b")
    for upload_id in (1, 2):
        store.save_trace(engine, upload_id, ABOUT, DRAWS, SITES)
    store.delete_upload(engine, 1)
    for view in ("v1_traces", "v1_trace_draws", "v1_trace_sites"):
        assert {row["upload_id"] for row in store.select(engine, view)} == {2}


def test_a_trace_needs_its_file(engine):
    with pytest.raises(NotFoundError, match="no upload has the number 5"):
        store.save_trace(engine, 5, ABOUT)
    assert store.traces_of_run(engine, 1) == []
