"""Sums by kernel: the same as numpy gives, whatever the number of launches, and in memory that does not grow."""

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc import store
from profsvc.store.ingest.writers import kernel_totals
from tests.store.conftest import KERNELS, batches, info


@pytest.mark.parametrize("at_once", [1, 50, 10_000])
def test_totals_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(kernel_totals, "LAUNCHES_IN_MEMORY", at_once)
    monkeypatch.setattr(kernel_totals, "MAX_MEMORY_BYTES", 1024)
    monkeypatch.setattr(kernel_totals, "LAUNCHES_PER_BLOCK", 300)
    draw = np.random.default_rng(3)
    kernels = draw.choice([5, 7, 100, 10**9], 1000)
    durations = np.where(draw.random(1000) < 0.1, np.nan, draw.lognormal(8, 2, 1000))
    durations[kernels == 100] = np.nan
    gathered = kernel_totals.KernelTotals()
    for part in np.array_split(np.arange(1000), 7):
        gathered.add(kernels[part], durations[part])
    found = {row.kernel_id: row for row in gathered.rows()}
    gathered.close()
    assert list(found) == [5, 7, 100, 10**9]
    for kernel, row in found.items():
        own = durations[(kernels == kernel) & ~np.isnan(durations)]
        assert (row.launches, row.timed) == ((kernels == kernel).sum(), len(own))
        if kernel == 100:
            assert row[3:] == (None,) * 5
            continue
        assert row[3:] == pytest.approx((own.sum(), own.min(), *np.quantile(own, [0.5, 0.95]), own.max()), rel=1e-15)


def test_a_file_is_summed_up_by_kernel(engine: Engine) -> None:
    store.write_upload(engine, info(), store.RunInfo(name="first", commit_id="abc"), batches(5))
    first, second = sorted(store.select(engine, "v1_kernel_totals"), key=lambda row: KERNELS.index(row["kernel"]))
    assert (first["kernel"], first["launches"], first["timed"], first["total_ns"]) == (KERNELS[0], 3, 3, 3753.0)
    assert (second["min_ns"], second["mean_ns"], second["max_ns"]) == (1250.5, 1251.0, 1251.5)
    assert (first["p50_ns"], second["p95_ns"]) == (1251.0, pytest.approx(1251.45))
    assert (first["run"], first["commit_id"], first["upload_id"], first["same_as"]) == ("first", "abc", 1, None)


def test_launches_without_duration_count_but_have_no_sum(engine: Engine) -> None:
    store.write_upload(engine, info(), store.RunInfo(), batches(4, duration_ns=[None, 8.0]))
    first, second = sorted(store.select(engine, "v1_kernel_totals"), key=lambda row: KERNELS.index(row["kernel"]))
    assert (first["launches"], first["timed"], first["total_ns"], first["mean_ns"], first["p95_ns"]) == (
        2, 0, None, None, None,
    )  # fmt: skip
    assert (second["launches"], second["mean_ns"]) == (2, 8.0)


def test_totals_go_with_their_file(engine: Engine, stored: store.StoredUpload) -> None:
    store.delete_upload(engine, stored.upload_id)
    assert store.select(engine, "v1_kernel_totals") == []
