"""The wall time of runs: a slow sweep over the events of the views is the second method, to the nanosecond."""

import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from profsvc import pipeline, specs, store, views
from profsvc.pipeline import wall_time as subject
from profsvc.store.queries.traces import events, lanes

ROOT = Path(__file__).parents[2]
CORPUS = ROOT.parent / "shared" / "corpus"
FIXTURES = [
    *("nsys_sqlite/two_devices.sqlite", "nsys_sqlite/graphs.sqlite", "nsys_sqlite/only_kernels.sqlite"),
    *("nsys_stats/gpu_trace.csv", "nsys_stats/several_reports.csv", "kineto/cuda.json", "kineto/rocm.json"),
    *("kineto/xla.json", "kineto/base_time.json", "rocprof/kernel_trace.csv", "rocprof/memory_copy_trace.csv"),
    *("rocprof_sqlite/one_process.db", "rocprof_results/sys_trace.db", "nvprof/gpu_trace.csv"),
]
CAPTURES = [
    "3_nsys/GindaChen__nsys-ai__h100_2gpu_1s.sqlite",
    "3_nsys/PranavDani__Flame__fluidsGL_cuda_gpu_trace_base_v1.csv",
    "3_nsys/PranavDani__Flame__torch-ex.sqlite",
    "3_nsys/PranavDani__Flame__torch-ex_cuda_gpu_trace_base.csv",
    "3_nsys/brycelelbach__nsightful__power_iteration__baseline.sqlite",
    "7_traces/facebookresearch__HolisticTraceAnalysis__alexnet_trace.json.gz",
    "7_traces/facebookresearch__HolisticTraceAnalysis__event_sync_trace.json.gz",
    "7_traces/facebookresearch__HolisticTraceAnalysis__rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "7_traces/facebookresearch__HolisticTraceAnalysis__triton_example.json.gz",
    "8_rocprof/ROCm__rocprofiler-compute__Axes1_mi100_timestamps.csv",
    "8_rocprof/ROCm__rocprofiler-compute__Axes1_mi200_timestamps.csv",
]
ORDER = list(specs.wall_time_categories())
Lane = tuple[int | None, int | None]
Event = tuple[int, int, str]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "sqlite":
        yield request.getfixturevalue("engine")
        return
    made = store.open_store(request.getfixturevalue("postgres_whole_url"), pooled=True)
    yield made
    made.dispose()


def ingest(engine: Engine, content: bytes, name: str, run: str = "r") -> None:
    pipeline.ingest(engine, io.BytesIO(content), name, store.RunInfo(name=run))


def budget(engine: Engine, run_id: int = 1) -> dict[Lane, dict[str, int]]:
    found: dict[Lane, dict[str, int]] = defaultdict(dict)
    for row in store.select(engine, "v1_wall_time", run_id=run_id):
        found[row["process_id"], row["device_index"]][row["category"]] = row["time_ns"]
    return found


def span(row: dict[str, Any]) -> tuple[int, int]:
    return row["start_ns"], row["start_ns"] + int(row["duration_ns"] + 0.5)


def timed(engine: Engine, view: str) -> list[dict[str, Any]]:
    return [row for row in store.select(engine, view) if None not in (row["start_ns"], row["duration_ns"])]


def device_category(kind: str, name: str) -> str:
    if kind == "kernel":
        return "collectives" if name.lower().startswith(("nccl", "rccl")) else "kernels"
    if name == "memset" or name.startswith("unified"):
        return {"m": "memsets", "u": "unified_memory"}[name[0]]
    return "host_copies" if "H" in name else "device_copies"


def swept(engine: Engine) -> dict[Lane, Counter[str]]:
    """The wall time of each device of a single file, instant by instant of its events."""
    device: dict[Lane, list[Event]] = defaultdict(list)
    launches, copies = timed(engine, "v1_launches"), timed(engine, "v1_transfers")
    lanes = {(row["process_id"], row["device_index"]) for row in launches or copies}
    for kind, rows in (("kernel", launches), ("transfer", copies)):
        for row in rows:
            lane = (row["process_id"], row["device_index"])
            lane = lane if lane[1] is not None else next(iter(lanes))
            device[lane].append(
                (*span(row), device_category(kind, row["kernel_short" if kind == "kernel" else "kind"]))
            )
    host: dict[int | None, list[Event]] = defaultdict(list)
    submitted: dict[tuple[int | None, int], int] = {}
    for row in timed(engine, "v1_api_calls"):
        host[row["process_id"]].append((*span(row), specs.activity_category("call", row["name"])))
        key = (row["process_id"], row["correlation_id"])
        submitted[key] = min(submitted.get(key, span(row)[1]), span(row)[1])
    for row in timed(engine, "v1_ranges"):
        if row["domain"] == "CUDA graph":
            lane = next(iter(lanes), (row["process_id"], None))
            device[lane].append((*span(row), "graphs"))
        else:
            host[row["process_id"]].append((*span(row), "host_ranges"))
    processes = {process for process, _ in submitted}
    for row in launches:
        process = row["process_id"] if row["process_id"] is not None else next(iter(processes), None)
        if (end := submitted.get((process, row["correlation_id"]), row["start_ns"])) < row["start_ns"]:
            device[row["process_id"], row["device_index"]].append((end, row["start_ns"], "not_started"))
    return {
        lane: sweep([*events, *(one for process in host if None in (lane[0], process) or lane[0] == process
                                for one in host[process])], events)
        for lane, events in device.items()
    }  # fmt: skip


def sweep(events: list[Event], own: list[Event]) -> Counter[str]:
    work = [event for event in own if event[2] != "not_started"]
    begin, stop = min(event[0] for event in work), max(event[1] for event in work)
    edges = sorted(
        (t, step, category)
        for start, end, category in events
        if end > start
        for t, step in ((start, 1), (end, -1))
        for category in [category]
    )
    active, found, before = Counter[str](), Counter[str](), begin
    for t, step, category in [*edges, (stop, 0, "kernels")]:
        now = min(max(t, begin), stop)
        top = next((one for one in ORDER if active[one]), "not_recorded")
        found[top] += now - before
        before = now
        active[category] += step
    return found


def check(engine: Engine) -> None:
    found = budget(engine)
    assert {lane: +Counter(parts) for lane, parts in found.items()} == {
        lane: +parts for lane, parts in swept(engine).items()
    }
    for row in store.select(engine, "v1_wall_time"):
        own = found[row["process_id"], row["device_index"]]
        assert sum(own.values()) == row["wall_ns"]
        assert 0 <= row["hidden_ns"] <= row["wall_ns"] - row["time_ns"]
        assert row["recoverable_ns"] == (None if row["category"] in ("kernels", "graphs") else row["time_ns"])
    named = Counter[tuple[Any, ...]]()
    for row in store.select(engine, "v1_wall_time_details"):
        named[row["process_id"], row["device_index"], row["category"]] += row["time_ns"]
    for (process, device, category), total in named.items():
        assert total <= found[process, device][category]


@pytest.mark.parametrize("name", FIXTURES)
def test_fixtures_add_up(engine: Engine, name: str) -> None:
    file = ROOT / "fixtures" / name
    ingest(engine, file.read_bytes(), file.name)
    assert budget(engine)
    check(engine)


def test_few_events_at_once_add_up(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVENTS_PER_FETCH", 2)
    test_fixtures_add_up(engine, "nvprof/gpu_trace.csv")


@pytest.mark.parametrize("name", CAPTURES)
def test_captures_add_up(engine: Engine, name: str) -> None:
    file = CORPUS / name
    if not file.exists():
        pytest.skip("the corpus is not here")
    ingest(engine, file.read_bytes(), file.name)
    assert budget(engine)
    check(engine)


def kineto(*events: tuple[Any, ...]) -> bytes:
    """A trace of events: category, name, start, duration, and device (kernels, copies) or correlation (calls)."""
    found = []
    for category, name, start, duration, number in events:
        args = (
            {"correlation": number} if category == "cuda_runtime" else {"device": 0, "correlation": number, "stream": 7}
        )
        found.append(
            {"ph": "X", "cat": category, "name": name, "pid": 5, "tid": 5, "ts": start, "dur": duration, "args": args}
        )
    return json.dumps({"traceEvents": found, "baseTimeNanoseconds": 0}).encode()


STEPS = (
    ("user_annotation", "ProfilerStep#1", 0, 100, 0),
    ("user_annotation", "ProfilerStep#2", 100, 100, 0),
    ("cuda_runtime", "cudaLaunchKernel", 5, 5, 1),
    ("kernel", "gemm", 20, 40, 1),
    ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 50, 30, 2),
    ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 70, 20, 3),
    ("gpu_memset", "Memset (Device)", 90, 0, 4),
    ("cuda_runtime", "cudaDeviceSynchronize", 95, 10, 5),
    ("cuda_runtime", "cudaLaunchKernel", 110, 10, 6),
    ("kernel", "gemm", 150, 50, 6),
)  # fmt: skip


def test_what_each_instant_counts_for(database: Engine) -> None:
    ingest(database, kineto(*STEPS), "steps.json")
    assert {name: time for name, time in budget(database)[None, 0].items() if time} == {
        "kernels": 90_000, "collectives": 20_000, "host_copies": 10_000, "not_started": 30_000, "launch_calls": 10_000,
        "sync_calls": 10_000, "host_ranges": 10_000,
    }  # fmt: skip
    (lane,) = views.run(database, 1)["wall_time"]
    assert [row["category"] for row in lane["budget"]][:3] == ["kernels", "not_started", "collectives"]
    assert lane["budget"][1]["names"] == [{"name": "gemm", "time_ns": 30_000, "share": pytest.approx(30 / 180)}]
    assert lane["iterations"]["count"] == 2
    assert (lane["iterations"]["shortest"], lane["iterations"]["longest_ns"]) == ("ProfilerStep#1", 100_000)
    rows = store.select(database, "v1_wall_time_iterations")
    assert sum(row["time_ns"] for row in rows if row["iteration"] == 0) == 80_000  # the device begins at 20 us
    assert lane["notes"] == []


def test_files_of_one_run_are_one_trace_or_one_for_each_rank(engine: Engine) -> None:
    kernels, calls = (
        kineto(*(one for one in STEPS if (one[0] in ("cuda_runtime", "user_annotation")) is host))
        for host in (False, True)
    )
    ingest(engine, kernels, "kernels.json")
    alone = budget(engine)[None, 0]
    ingest(engine, calls, "calls.json")
    together = budget(engine)[None, 0]
    assert set(alone) & {"not_started", "launch_calls"} == set()
    assert together["not_started"] == 30_000
    assert sum(alone.values()) == sum(together.values()) == 180_000
    ingest(engine, kineto(*((*one[:2], one[2] + 7, *one[3:]) for one in STEPS)), "rank1.json", "ranks")
    ingest(engine, kineto(*((*one[:2], one[2] + 9, *one[3:]) for one in STEPS[:-1])), "rank2.json", "ranks")
    ranks = store.select(engine, "v1_wall_time", run_id=2, category="kernels")
    assert [(row["upload_id"], row["wall_ns"], row["time_ns"]) for row in ranks] == [
        (3, 180_000, 90_000),
        (4, 70_000, 40_000),
    ]


def test_what_is_unknown_is_said(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(
        engine, kineto(("kernel", "k", 10, 5, 1), ("cuda_runtime", "cudaLaunchKernel", 12, 5, 1)), "clocks.json", "a"
    )
    ingest(engine, kineto(("kernel", "k", 10, 5, 1), ("cuda_runtime", "cudaLaunchKernel", 2, 5, 9)), "apart.json", "b")
    ingest(engine, kineto(("kernel", "k", 10, 5, 1)), "device.json", "c")
    with monkeypatch.context() as patch:
        patch.setattr(subject, "MAX_EVENTS_AT_UPLOAD", 1)
        patch.setattr(lanes, "_spans", lambda *_: pytest.fail("an upload reads no event of a long trace"))
        ingest(engine, kineto(*STEPS), "long.json", "d")
    said = {row["run_id"]: row["message"] for row in store.select(engine, "v1_wall_time_notes")}
    assert said[1].startswith("launches that begin before the call that launched them: 1, by up to 2 us; the clocks")
    assert said[2] == subject.NO_LAUNCH_CALLS
    assert said[3] == subject.NO_CALLS
    assert said[4].endswith("too many to add up during an upload; run: profsvc analyze id:4")
    assert budget(engine, 4) == {}
    (lane,) = views.run(engine, 4)["wall_time"]
    assert (lane["wall_ns"], lane["budget"]) == (None, [])
    assert pipeline.analyze(engine, 4, asked=True)
    assert sum(budget(engine, 4)[None, 0].values()) == 180_000


def test_one_number_for_all_launches_and_calls_joins_few_rows(engine: Engine) -> None:
    events = [
        one for k in range(300) for one in (("kernel", "k", 3 * k, 1, 0), ("cuda_runtime", "cuLaunch", 3 * k, 1, 0))
    ]
    ingest(engine, kineto(*events), "same.json")
    (trace,) = store.traces_with_times(engine, 1)
    streams = store.trace_streams(engine, trace, store.EarlyLaunches())
    assert sum(some.start.size for some in streams[-1]) < 300


def test_a_run_without_a_trace_has_no_wall_time(demo: Engine) -> None:
    assert views.run(demo, 1)["wall_time"] == []
    assert store.select(demo, "v1_wall_time") == []


def test_numbers_of_processes_and_devices_may_be_any(engine: Engine) -> None:
    events = []
    for number, (category, name) in enumerate((("kernel", "k"), ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"))):
        for device in (-1, -(2**62), 2**62):
            place = {"ph": "X", "cat": category, "name": name, "pid": -1, "tid": 0, "ts": 10 * number, "dur": 5}
            events.append(place | {"args": {"device": device, "stream": 7}})
    ingest(engine, json.dumps({"traceEvents": events}).encode(), "strange.json")
    assert [parts["kernels"] + parts["host_copies"] for parts in budget(engine).values()] == [10_000] * 3
    check(engine)


def test_ranges_whose_names_differ_by_numbers_are_one(engine: Engine) -> None:
    ranges = [("user_annotation", f"load {k}", 10 * k, 8, 0) for k in range(1, 9)]
    ingest(engine, kineto(("kernel", "k", 0, 5, 1), *ranges, ("kernel", "k", 100, 5, 1)), "loads.json")
    (row,) = store.select(engine, "v1_wall_time_details")
    assert (row["name"], row["time_ns"]) == ("load #", 64_000)
    check(engine)


def test_times_too_far_apart_are_left_out_and_counted(engine: Engine) -> None:
    far = ("kernel", "k", 9 * 10**15, 5, 1)
    ingest(engine, kineto(("kernel", "k", 10, 5, 1), far), "far.json")
    assert budget(engine)[None, 0] == {"kernels": 5_000}
    notes = [row["message"] for row in store.select(engine, "v1_wall_time_notes")]
    assert "launches without a usable start or duration are not in the wall time: 1" in notes


@pytest.mark.parametrize("order", [("gpu", "api"), ("api", "gpu")])
def test_graphs_whose_kernels_are_missing_are_no_idle_time_without_a_word(database: Engine, order: list[str]) -> None:
    for kind in order:
        name = f"graph_65536_{kind}_trace.csv.gz"
        ingest(database, (ROOT / "fixtures" / "merged_launches" / name).read_bytes(), name)
    (note,) = (row["message"] for row in store.select(database, "v1_wall_time_notes", run_id=1))
    assert note.startswith("100 launches of CUDA graphs have none of their kernels in the file, so the time that they ")
    assert note.endswith("took counts as idle; profile with --cuda-graph-trace=node")
    (row,) = (row for row in store.select(database, "v1_criteria", run_id=1) if row["criterion"] == "host_sync")
    assert (row["value"], row["speedup"]) == (None, None)
    assert row["reason"].startswith("the trace lacks the kernels of 100 launches of CUDA graphs; profile with ")


def test_graphs_recorded_as_a_whole_give_no_share_of_kernels(database: Engine) -> None:
    ingest(database, (ROOT / "fixtures" / "nsys_sqlite" / "graphs.sqlite").read_bytes(), "graphs.sqlite")
    (row,) = (row for row in store.select(database, "v1_criteria", run_id=1) if row["criterion"] == "host_sync")
    assert (row["value"], str(row["reason"])[:34]) == (None, "the trace lacks the kernels of 2 l")
