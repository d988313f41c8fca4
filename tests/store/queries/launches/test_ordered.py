"""Pages of launches, transfers by kind and numbers of launches, beside a sort of all rows of the views."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.store.connection.transactions import reading
from profsvc.store.ingest.writers import listed_launches
from profsvc.store.queries.launches import ordered
from profsvc.store.queries.launches.listing import LAUNCH_ORDERS, LaunchFilter
from profsvc.store.queries.launches.ordered import LaunchOrder
from profsvc.tables import Batch, frame
from tests.store.conftest import info

RUN = store.RunInfo(name="run")
NAMES = ("void zeta<float>(int)", "void zeta<double>(int)", "alpha(int)", "middle(float *)", "rare()")
KINDS = ("HtoD", "DtoH", "memset")
LAUNCHES = 90


@pytest.fixture(autouse=True)
def short_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"MIN_LAUNCHES": 40, "DEPTH": 12, "KERNEL_DEPTH": 9, "LAUNCHES_PER_BLOCK": 25}
    for name, value in limits.items():
        monkeypatch.setattr(listed_launches, name, value)


def trace(
    seed: int, launches: int = LAUNCHES, begin_ns: int = 0, *, gaps: bool = False, timed: bool = False
) -> list[Batch]:
    """Return a trace with equal durations, launches without one unless all are ``timed``, and transfers."""
    draw = np.random.default_rng(seed)
    kernels = draw.choice(len(NAMES) - 1, LAUNCHES)
    kernels[20] = len(NAMES) - 1
    durations = draw.choice([2.0, 3.5, 7.0, 100.0, 101.0, 250.25, 8.0 if timed else np.nan], LAUNCHES)
    found = []
    for begin in range(0, launches, 20):
        index = list(range(begin, min(begin + 20, launches)))
        rows = {
            "launch_index": [2 * i if gaps else i for i in index],
            "kernel": [NAMES[kernels[i]] for i in index],
            "device": ["NVIDIA H200"] * len(index),
            "stream": [3 + i % 2 for i in index],
            "start_ns": [begin_ns + 1000 * i for i in index],
            "duration_ns": [None if np.isnan(durations[i]) else durations[i] for i in index],
            "grid_x": [1 + i % 3 for i in index],
            "line": [i + 1 for i in index],
        }
        copies = {
            "kind": [KINDS[i % 3] for i in index],
            "bytes": [None if i % 3 == 2 else 2**50 + i for i in index],
            "duration_ns": [None if i % 2 else 10.0 * i for i in index],
            "line": [i + 1 for i in index],
        }
        tables = {"launches": frame("launches", rows), "transfers": frame("transfers", copies)}
        found.append(Batch(tables, lines_stored=len(index)))
    return found


def put(engine: Engine, name: str, batches: Sequence[Batch], tool: str = "nvprof") -> store.StoredUpload:
    return store.write_upload(engine, info(name, f"{name}.csv", tool), RUN, batches)


def with_results(engine: Engine, run_id: int, every: int) -> None:
    """Save results of some launches; the value of some is not known."""
    ids = [row["launch_id"] for row in store.select(engine, "v1_launches", run_id=run_id)][::every]

    def column(values: Sequence[Any], kind: str = "Float64") -> Any:
        known = [None if place % 4 == 3 else values[place % len(values)] for place in range(len(ids))]
        return pd.array(known, kind) if kind else known

    launches = pd.array(ids, "Int64")
    flags = pd.array([0] * len(ids), "Int64")
    bounds = {"speedup": column([1.0, 2.0, 1.5]), "speedup_ceiling": column([5.0, 4.0]),
              "bound": column(["divergence", "coalescing"], ""), "flags": flags}  # fmt: skip
    costs = {"rank": [1] * len(ids), "cause": ["bank_conflicts"] * len(ids), "saving_ns": column([7.0, 8.0, 7.5]),
             "saving_fraction": [0.5] * len(ids), "low": [0.1] * len(ids), "high": [0.9] * len(ids)}  # fmt: skip
    counters = [
        pd.DataFrame({"launch_id": launches, "counter": counter, "value": column(values)})
        for counter, values in (("sol_sm_fraction", [0.5, 0.25]), ("sol_memory_fraction", [0.5, 0.75, 0.1]))
    ]
    part = {
        "potential": pd.DataFrame({"launch_id": launches, **bounds}),
        "causes": pd.DataFrame({"launch_id": launches, **costs}),
        "counters": pd.concat(counters),
    }
    store.save_results(engine, run_id, [part], "1")


Values = dict[str, dict[int, Any]]


def everything(engine: Engine, run_id: int) -> tuple[list[dict[str, Any]], Values]:
    """Return all launches, and by order what they are ordered by."""
    rows = store.select(engine, "v1_launches", run_id=run_id)
    return rows, {name: values_by_launch(engine, run_id, name) for name in LAUNCH_ORDERS}


def values_by_launch(engine: Engine, run_id: int, name: str) -> dict[int, Any]:
    """Return what launches are ordered by."""
    columns = {"launch": "launch_id", "duration": "duration_ns", "kernel": "kernel_short"}
    if name in columns:
        return {row["launch_id"]: row[columns[name]] for row in store.select(engine, "v1_launches", run_id=run_id)}
    if name in {"potential", "ceiling", "limit"}:
        column = {"potential": "speedup", "ceiling": "speedup_ceiling", "limit": "bound"}[name]
        return {row["launch_id"]: row[column] for row in store.select(engine, "v1_potential", run_id=run_id)}
    if name == "saving":
        rows = store.select(engine, "v1_causes", run_id=run_id, rank=1)
        return {row["launch_id"]: row["saving_ns"] for row in rows}
    counter = {"compute": "sol_sm_fraction", "memory": "sol_memory_fraction"}[name]
    rows = store.select(engine, "v1_counter_values", run_id=run_id, counter=counter)
    return {row["launch_id"]: row["value"] for row in rows}


def expected(whole: tuple[list[dict[str, Any]], Values], order: str, kernel_id: int | None) -> list[int]:
    """Return all launches in an order, sorted here."""
    name, down = order.removeprefix("-"), order.startswith("-")
    rows, found = whole[0], whole[1][name]
    numbers = sorted(row["launch_id"] for row in rows if kernel_id in {None, row["kernel_id"]})
    by = {number: found.get(number) for number in numbers}
    known = sorted(
        (number for number in numbers if by[number] is not None), key=lambda number: by[number], reverse=down
    )
    return known + [number for number in numbers if by[number] is None]


def assert_like_all(engine: Engine, run_id: int) -> None:
    """Compare pages of every order, of all kernels and of each, with all rows."""
    every_row = everything(engine, run_id)
    kernels = [row["kernel_id"] for row in store.select(engine, "v1_kernels")]
    for kernel_id in (None, *kernels):
        with reading(engine) as connection:
            for order in (sign + name for name in LAUNCH_ORDERS for sign in ("", "-")):
                whole = expected(every_row, order, kernel_id)
                launches = LaunchOrder(connection, run_id, None if kernel_id is None else [kernel_id])
                pages = ((0, 5), (8, 7), (0, 1000)) if kernel_id else ((3, 6), (0, 12), (8, 7), (len(whole) // 2, 20))
                for skip, most in pages:
                    assert launches.numbers(order, most, skip) == whole[skip : skip + most], (kernel_id, order, skip)
    longest = expected(every_row, "-duration", None)[:4]
    assert [row["launch_id"] for row in store.longest_launches(engine, run_id, 4)[0]] == longest
    two = sorted(kernels)[:2]
    found = {row["launch_id"] for row in store.longest_launches(engine, run_id, 3, kernel_ids=two)[0]}
    every = {number for one in two for number in expected(every_row, "-duration", one)}
    both = [number for number in expected(every_row, "-duration", None) if number in every]
    assert found == set(both[:3])
    indexes = [row["launch_index"] for row in store.select(engine, "v1_launches", run_id=run_id)]
    assert store.launch_numbers(engine, run_id) == (min(indexes, default=None), max(indexes, default=None))
    assert_transfers(engine, run_id)
    assert_filters(engine, run_id, every_row)


def assert_filters(engine: Engine, run_id: int, every_row: tuple[list[dict[str, Any]], Values]) -> None:
    """Compare filtered lists, their lengths, and the values to filter by."""
    rows = every_row[0]
    one = rows[len(rows) // 3]
    filters = {
        LaunchFilter(kernel="ZETA<"): {row["launch_id"] for row in rows if "zeta" in row["kernel"]},
        LaunchFilter(kernel="ta<fl", kernel_id=one["kernel_id"]): {
            row["launch_id"] for row in rows if row["kernel_id"] == one["kernel_id"] and "ta<fl" in row["kernel"]
        },
        LaunchFilter(upload_id=one["upload_id"]): {
            row["launch_id"] for row in rows if row["upload_id"] == one["upload_id"]
        },
        LaunchFilter(upload_id=one["upload_id"], kernel="alpha"): {
            row["launch_id"] for row in rows if row["upload_id"] == one["upload_id"] and "alpha" in row["kernel"]
        },
        LaunchFilter(stream=3): {row["launch_id"] for row in rows if row["stream"] == 3},
        LaunchFilter(device_id=one["device_id"], kernel="nothing"): set(),
    }
    for place, (only, wanted) in enumerate(filters.items()):
        assert store.count_launches(engine, run_id, only) == len(wanted), only
        for order in list(LAUNCH_ORDERS)[place % 3 :: 3]:  # every order with two of the filters
            whole = [number for number in expected(every_row, order, None) if number in wanted]
            for skip, limit in ((2, 5), (0, 400)):
                found, more = store.list_launches(engine, run_id, only, order=order, skip=skip, limit=limit)
                assert [row["launch_id"] for row in found] == whole[skip : skip + limit], (only, order, skip)
                assert more == (len(whole) > skip + limit)
    facets = store.launch_facets(engine, run_id)
    for facet, column in (("device", "device_id"), ("stream", "stream"), ("source", "upload_id")):
        counts = Counter(row[column] for row in rows)
        assert {row["value"]: row["launches"] for row in facets[facet]} == counts


def assert_transfers(engine: Engine, run_id: int) -> None:
    rows = store.select(engine, "v1_transfers", run_id=run_id)
    found = {row["kind"]: row for row in store.transfers_by_kind(engine, run_id)}
    assert set(found) == {row["kind"] for row in rows}
    for kind, one in found.items():
        own = [row for row in rows if row["kind"] == kind]
        times = [row["duration_ns"] for row in own if row["duration_ns"] is not None]
        sizes = [row["bytes"] for row in own if row["bytes"] is not None]
        total = sum(times) / 1e6 if times else None
        assert one == {"kind": kind, "count": len(own), "duration_ms": total, "bytes": sum(sizes) if sizes else None}


def test_pages_are_those_of_all_launches(engine: Engine) -> None:
    run_id = put(engine, "long", trace(1)).run_id
    assert_like_all(engine, run_id)
    with_results(engine, run_id, 3)
    assert_like_all(engine, run_id)
    with_results(engine, run_id, 50)
    assert_like_all(engine, run_id)


def test_several_files_long_and_short_with_gaps_in_their_numbers(engine: Engine) -> None:
    run_id = put(engine, "long", trace(1)).run_id
    put(engine, "short", trace(2, 17, 10**9))
    put(engine, "gaps", trace(3, 60, 2 * 10**9, gaps=True))
    put(engine, "again", trace(4, 75, 3 * 10**9))
    assert_like_all(engine, run_id)
    with_results(engine, run_id, 7)
    assert_like_all(engine, run_id)


def test_launches_in_two_files_count_once_whichever_goes(engine: Engine) -> None:
    part = put(engine, "part", trace(1, 60, timed=True))
    whole = put(engine, "whole", trace(1, 80, timed=True))
    other = put(engine, "other", trace(5, 50, 10**9, timed=True))
    marks = {row["upload_id"]: row["same_as"] for row in store.select(engine, "v1_uploads")}
    assert marks == {part.upload_id: whole.upload_id, whole.upload_id: None, other.upload_id: None}
    with_results(engine, whole.run_id, 7)
    assert_like_all(engine, whole.run_id)
    store.delete_upload(engine, whole.upload_id)
    assert_like_all(engine, whole.run_id)
    (record,) = store.deleted_uploads(engine)
    back = replace(info("whole", "whole.csv", "nvprof"), upload_id=whole.upload_id)
    store.write_upload(
        engine, back, store.RunInfo(run_id=whole.run_id), trace(1, 80, timed=True), store.restoring(record)
    )
    assert_like_all(engine, whole.run_id)
    again = replace(info("other", "other.csv", "nvprof"), upload_id=other.upload_id)
    store.write_upload(
        engine, again, store.RunInfo(run_id=whole.run_id), trace(6, 45, 10**9),
        store.rereading(other.upload_id, whole.run_id),
    )  # fmt: skip
    assert_like_all(engine, whole.run_id)
    store.delete_run(engine, whole.run_id)
    with reading(engine) as connection:
        for table in ("listed_launches", "launch_lists", "transfer_totals", "place_totals", "shape_totals"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() == 0


def test_the_first_pages_of_a_long_file_do_not_read_its_launches(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = put(engine, "long", trace(1)).run_id
    monkeypatch.setattr(ordered, "_ALL", "SELECT no_such_column")
    kernel_id = store.select(engine, "v1_kernels")[0]["kernel_id"]
    for order in (sign + name for name in LAUNCH_ORDERS for sign in ("", "-")):
        for kernels in (None, [kernel_id]):
            with reading(engine) as connection:
                assert len(LaunchOrder(connection, run_id, kernels).numbers(order, 6, 3)) == 6


def test_a_sum_of_sizes_that_no_integer_holds_is_unknown(engine: Engine) -> None:
    copies = {"kind": ["HtoD"] * 3, "bytes": [2**62] * 3, "duration_ns": [1.0] * 3, "line": [1, 2, 3]}
    stored = put(engine, "copies", [Batch({"transfers": frame("transfers", copies)}, lines_stored=3)])
    (found,) = store.transfers_by_kind(engine, stored.run_id)
    assert found == {"kind": "HtoD", "count": 3, "duration_ms": 3e-6, "bytes": None}
