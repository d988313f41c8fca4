"""A memory trace from its bytes to the store and out of it: hit ratios, sites, refusals, again and deleted."""

import io

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import pipeline, specs, store
from profsvc.analysis.launches import memory_traces as analysed
from profsvc.errors import NotFoundError
from profsvc.formulas.memory_hierarchy import Cache, hierarchy_mc
from profsvc.pipeline import memory_traces
from profsvc.pipeline.ingestion.kept_bytes import open_kept_bytes
from profsvc.reports.text import explanation
from profsvc.reports.text.runs import run as run_text
from profsvc.views import run as run_view
from profsvc.views.explain.numbers import explain
from profsvc.views.traces import memory as shown
from tests.benchmarks.memory_hierarchy import trace

HEADER = "block,warp,seq,site,address,kind\n"
DEVICE, KERNEL = "# device: NVIDIA H200\n", "# kernel: made\n"


def csv_of(references: int, before: str = DEVICE + KERNEL) -> bytes:
    made = trace(references)
    columns = [np.broadcast_to(np.asarray(x), np.asarray(made.seq).size).tolist() for x in made[:6]]
    return (before + HEADER + "".join(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))).encode()


def upload(engine: Engine, data: bytes, files: store.BlobStore | None = None, **run: str) -> pipeline.ImportResult:
    return pipeline.ingest(engine, io.BytesIO(data), "t.csv", store.RunInfo(name="r", **run), files=files)


def values(engine: Engine, run_id: int = 1) -> dict[str, float | None]:
    rows = store.select(engine, "v1_models", run_id=run_id, model=analysed.MODEL)
    return {row["quantity"]: row["value"] for row in rows}


def test_hit_ratios_are_those_of_the_formula_on_the_caches_of_the_device(engine):
    verdict = upload(engine, csv_of(4000))
    assert (verdict.format, verdict.message) == ("memory-trace", "4,000 references of 2 sites")
    hierarchy = analysed.device_caches(specs.device("H200"), 8)
    assert (hierarchy.sms, hierarchy.l1) == (132, Cache(128, 16))
    want = hierarchy_mc(trace(4000), hierarchy)
    found = values(engine)
    for place, level in enumerate(("l1_load", "l1_store", "l2_load", "l2_store")):
        name = f"{level}_hit_ratio"
        if level == "l1_store":
            assert found[name] is None
            continue
        assert found[name] == pytest.approx(want.distribution.mean[place])
        ends = [found[name + ending] for ending in ("_sd", "_p05", "_p50", "_p95")]
        expected = [want.distribution.sd[place], *want.distribution.quantiles[place]]
        assert ends == pytest.approx(expected, abs=1e-15)
    assert found["dram_bytes"] == pytest.approx(128 * want.dram_lines.mean())
    assert found["draws"] == 30
    (row,) = store.select(engine, "v1_traces")
    assert (row["kernel"], row["device"], row["references_read"], row["blocks"]) == ("made", "NVIDIA H200", 4000, 5)
    draws = store.traces_of_run(engine, 1)[0].draws
    np.testing.assert_allclose([draw["l2_load_ratio"] for draw in draws], want.ratios[2])
    sites = {site["site"]: site for site in store.select(engine, "v1_trace_sites")}
    assert [sites[name]["requests"] for name in ("0", "2")] == want.sites.requests.tolist()
    assert [sites[name]["l1_ratio"] for name in ("0", "2")] == pytest.approx(want.sites.l1_ratio.tolist())


def test_the_order_of_the_file_does_not_matter(engine):
    data = csv_of(1000)
    head, lines = data.split(HEADER.encode())
    rows = lines.splitlines(keepends=True)
    mixed = b"".join(rows[k] for k in np.random.default_rng(0).permutation(len(rows)))
    upload(engine, data)
    pipeline.ingest(engine, io.BytesIO(head + HEADER.encode() + mixed), "m.csv", store.RunInfo(name="mixed"))
    assert values(engine, 1) == values(engine, 2)
    facts = [row["facts"] for row in store.select(engine, "v1_uploads")]
    assert ["mixed" in said for said in facts] == [False, True]


def test_two_traces_of_a_run_stand_beside_each_other_and_stay_when_it_is_analysed_again(engine):
    upload(engine, csv_of(500))
    upload(engine, csv_of(600))
    before = store.select(engine, "v1_models", run_id=1)
    assert {row["form"] for row in before} == {"upload 1", "upload 2"}
    assert {row["kernel"] for row in before} == {"made"}
    pipeline.analyze(engine, 1)
    assert store.select(engine, "v1_models", run_id=1) == before
    store.delete_upload(engine, 1)
    assert [row["upload_id"] for row in store.select(engine, "v1_traces")] == [2]
    assert {row["upload_id"] for row in store.select(engine, "v1_trace_draws")} == {2}


def test_a_device_that_is_named_later(engine, tmp_path):
    files = store.BlobStore(tmp_path / "files", free_bytes=0)
    upload(engine, csv_of(300, ""), files)
    assert values(engine) == dict.fromkeys(
        ("l1_load_hit_ratio", "l1_store_hit_ratio", "l2_load_hit_ratio", "l2_store_hit_ratio")
    )
    (trace_of_run,) = shown.traces_of_run(engine, 1)
    assert trace_of_run["levels"] == []
    assert "the device is unknown" in run_text.run(run_view(engine, "r"))
    upload(engine, b"block,warp,seq,site,address,kind\n0,0,0,a,0,load\n", files, device="NVIDIA H200")
    pipeline.analyze_again(engine, files, 1)
    assert {row["device"] for row in store.select(engine, "v1_traces")} == {"NVIDIA H200"}
    assert all(one["levels"] for one in shown.traces_of_run(engine, 1))


def test_without_kept_bytes_what_was_found_stays_and_what_was_not_is_told(engine, tmp_path):
    upload(engine, csv_of(300, ""))
    files = store.BlobStore(tmp_path / "files", free_bytes=0)
    pipeline.analyze_again(engine, files, 1)
    (row,) = store.select(engine, "v1_traces")
    assert row["reason"].startswith("the device is unknown")
    assert memory_traces.simulate_traces(engine, 1, open_kept_bytes(files)) == 0


@pytest.mark.parametrize(
    ("device", "reason"),
    [("GTX280", "no l1_size_bytes"), ("Voodoo 2", "no device named 'Voodoo 2'")],
)
def test_a_device_whose_caches_are_not_known(engine, device, reason):
    upload(engine, csv_of(200, f"# device: {device}\n"))
    (row,) = store.select(engine, "v1_traces")
    assert reason in row["reason"]
    assert (row["draws"], row["references_read"]) == (0, 200)
    with pytest.raises(NotFoundError):
        analysed.device_caches(specs.device("GTX280"), 8)


def test_barriers_that_a_warp_passes_backwards_are_told(engine):
    lines = "0,0,0,a,0,load,1\n0,0,1,a,0,load,0\n"
    upload(engine, (DEVICE + HEADER.replace("kind", "kind,epoch") + lines).encode())
    (row,) = store.select(engine, "v1_traces")
    assert row["reason"] == "epoch falls within a warp; allowed: barriers in the order of seq"


def test_blocks_that_do_not_fit_are_told(engine, monkeypatch):
    monkeypatch.setattr(memory_traces, "MAX_LINES", 1000)
    monkeypatch.setattr("profsvc.formats.native.memory_trace.PART_REFERENCES", 100)
    upload(engine, csv_of(4000))
    (row,) = store.select(engine, "v1_traces")
    assert (row["blocks"] + row["blocks_left_out"], row["flags"]) == (5, "EXTRAPOLATED")
    assert row["blocks_left_out"] > 0
    page = run_text.run(run_view(engine, "r"))
    assert f"({row['blocks_left_out']} further blocks left out)" in page


def test_fewer_orders_are_told(engine, monkeypatch):
    monkeypatch.setattr(memory_traces.hierarchy_of, "__defaults__", (30, 0, "rate", 0.05, 600))
    upload(engine, csv_of(200))
    (row,) = store.select(engine, "v1_traces")
    assert (row["draws"], row["flags"]) == (3, "EXTRAPOLATED")
    assert "200 lines in 3 random orders (smaller traces get 30)" in run_text.run(run_view(engine, "r"))


def test_reparse_and_the_same_bytes_again(engine, tmp_path):
    files = store.BlobStore(tmp_path / "files", free_bytes=0)
    upload(engine, csv_of(500), files)
    before = values(engine)
    pipeline.reparse(engine, files, 1)
    assert values(engine) == before
    assert upload(engine, csv_of(500), files).known
    assert values(engine) == before


def test_pages(engine):
    upload(engine, csv_of(2000))
    page = run_text.run(run_view(engine, "r"))
    assert "memory trace of upload 1, kernel made: 3 blocks, 2,000 lines in 30 random orders" in page
    assert "L1, stores                no accesses" in page
    (one,) = shown.traces_of_run(engine, 1)
    assert [len(level["draws"]) for level in one["levels"]] == [30, 0, 30, 30]
    walked = explain(engine, "memory_hierarchy", "r", None)
    assert {row["name"] for row in walked["trace"]} == set(values(engine))
    assert "upload 1" in explanation.explanation(walked)
    assert "hits of LRU caches" in explanation.explanation(explain(None, "memory_hierarchy", None, None))
