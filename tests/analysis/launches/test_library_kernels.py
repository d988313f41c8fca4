"""Kernels that experts tuned have little left to gain, and the bound says so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profsvc import pipeline, store

EXPORT = Path(__file__).parents[3] / "fixtures" / "library" / "ncu_raw_base.csv.gz"


@pytest.fixture(scope="module")
def bounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    engine = store.open_store(str(tmp_path_factory.mktemp("library") / "store.sqlite"), pooled=True)
    with EXPORT.open("rb") as stream:
        pipeline.ingest(engine, stream, EXPORT.name, store.RunInfo(name="library"))
    yield [row for row in store.select(engine, "v1_potential") if row["launch_id"] is not None]
    engine.dispose()


def test_streaming_kernels_are_at_the_limit_of_dram(bounds: list[dict[str, Any]]) -> None:
    streams = [b for b in bounds if b["kernel_short"] == "vectorized_elementwise_kernel" and b["duration_ns"] > 5e4]
    assert len(streams) >= 8
    assert all(b["speedup"] < 1.1 and b["ideal_bound"] == "dram" for b in streams)


def test_large_matrix_products_are_at_the_limit_of_their_pipe(bounds: list[dict[str, Any]]) -> None:
    half, single, double = bounds[:3]
    assert half["ideal_bound"] in {"tensor", "l1"}
    assert single["ideal_bound"] == "issue"
    assert double["ideal_bound"] == "tensor"
    assert all(b["speedup"] < 1.05 for b in (half, single, double))


def test_what_is_not_tuned_stands_out(bounds: list[dict[str, Any]]) -> None:
    potential = {b["kernel_short"]: b["speedup"] for b in bounds}
    assert potential["elementwise_kernel"] > 2  # a transposed copy without shared memory
    assert potential["vectorized_gather_kernel"] > 5  # rows of a table at random
