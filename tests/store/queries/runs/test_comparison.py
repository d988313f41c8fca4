"""What runs are compared by, beside the same of the views, on both databases."""

from collections import defaultdict

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, store
from tests.conftest import DEMO
from tests.store.conftest import Filled

VIEWS = ("v1_criteria", "v1_potential", "v1_models", "v1_causes")


@pytest.fixture
def run_id(engine: Engine, filled: Filled) -> int:
    def fill() -> None:
        with DEMO.open("rb") as stream:
            pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200"))

    filled(fill)
    return store.find_run(engine, "h200")


def weighted(rows: list[tuple[float, float]]) -> float:
    return sum(value * weight for value, weight in rows) / sum(weight for _, weight in rows)


def test_the_kernels_of_a_run_are_those_of_its_views(engine: Engine, run_id: int) -> None:
    launches = {row["launch_id"]: row for row in store.select(engine, "v1_launches", run_id=run_id)}
    counters = store.select(engine, "v1_counter_values", run_id=run_id)
    criteria, costs, registers = defaultdict(list), defaultdict(list), defaultdict(set)
    for row in store.select(engine, "v1_criteria", run_id=run_id):
        if row["launch_id"] is not None and row["value"] is not None:
            duration = launches[row["launch_id"]]["duration_ns"]
            criteria[row["kernel"], row["criterion"]].append((row["value"], duration))
    for row in store.select(engine, "v1_causes", run_id=run_id):
        costs[row["kernel"], row["cause"]].append(row["saving_ns"] or 0.0)
    for row in counters:
        if row["counter"] == "registers_per_thread" and row["value"] is not None:
            registers[launches[row["launch_id"]]["kernel"]].add(row["value"])
    found = store.kernels_of_run(engine, run_id)
    assert found.keys() == {row["kernel"] for row in launches.values()}
    assert {(kernel, name) for kernel, one in found.items() for name in one["criteria"]} == criteria.keys()
    for kernel, one in found.items():
        for name, value in one["criteria"].items():
            assert value == pytest.approx(weighted(criteria[kernel, name]), rel=1e-12)
        own = [row for row in launches.values() if row["kernel"] == kernel]
        for cause, each in one["causes"].items():
            assert each == pytest.approx(sum(costs[kernel, cause]) / len(own), rel=1e-12)
        assert (one["shape"]["registers"], one["shape"]["registers_most"]) == (
            min(registers[kernel]),
            max(registers[kernel]),
        )
    bounds = defaultdict(list)
    for row in store.select(engine, "v1_potential", run_id=run_id):
        if row["launch_id"] is not None and row["speedup"] is not None:
            bounds[row["kernel"]].append(row)
    for kernel, rows in bounds.items():
        one = found[kernel]
        times = [sum(row[name] for row in rows) for name in ("duration_ns", "ideal_ns")]
        assert one["predicted"] == pytest.approx(times[0] / times[1], rel=1e-12)
        names = {row["bound"] for row in rows}
        assert one["bound"] == (names.pop() if len(names) == 1 else None)
        flags = {flag for row in rows for flag in row["flags"].split() if flag.endswith("R_BOUND")}
        assert set((one["predicted_flags"] or "").split()) == flags
    clocks = store.clocks_of_run(engine, run_id)
    for name, clock in clocks.items():
        own = [(row["value"], launches[row["launch_id"]]["duration_ns"]) for row in counters
               if row["counter"] == name and row["value"] is not None]  # fmt: skip
        assert clock == pytest.approx(weighted(own), rel=1e-12)
    assert clocks.keys() == {"sm_clock_hz", "dram_clock_hz"}


def test_results_about_no_launch_are_those_of_the_view(engine: Engine, run_id: int) -> None:
    of_kernels = 0
    for view in VIEWS:
        rows = store.results_without_launch(engine, view, run_id)
        assert rows == store.select(engine, view, run_id=run_id, launch_id=None), view
        of_kernels += sum(row["kernel"] is not None for row in rows)
    assert of_kernels > 0
