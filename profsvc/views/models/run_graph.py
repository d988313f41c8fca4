"""The work-flow graph of a run: what follows what on its streams, and the average warp of its longest launches."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc import store
from profsvc.analysis.launches.run_graph import GraphSum, RunGraph
from profsvc.analysis.models.average_warp import average_warp
from profsvc.errors import NotFoundError, counted
from profsvc.formulas.performance.work_depth import available_parallelism, brent_time
from profsvc.reports.rows import plain
from profsvc.views.launches.listing import launches_of
from profsvc.views.models.launch_models import known_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

NODES, ARCS, WARPS = "nodes", "arcs", "warps"
SHOWS = (NODES, ARCS, WARPS)
LIMIT = 20
COLUMNS: Mapping[str, Sequence[str]] = {
    NODES: ("device", "node", "kind", "times", "total_us", "mean_us", "share", "visits"),
    ARCS: ("device", "source", "target", "times", "share"),
    WARPS: ("launch", "kernel", "bound", "balance", "data_stall", "conflicts", "predicted_us", "measured_us", "ratio"),
}
MODEL: Mapping[str, Any] = {
    "name": "graph",
    "title": "Work-flow graph of a run",
    "question": "What follows what, how much could overlap, and what bounds an average warp?",
    "source": "Kim2012, sections 2.2, 4.2.1 and 4.2.2",
}
STREAMS = (1, 2, 4)
MEASURED = "times are measured; how much can overlap is a bound"
ACCURACY = "34 launches on an H200: predicted time off by a factor of 1.19 in the median and 3.3 at worst"


@store.snapshot
def run_graph(engine: "Engine", run: str | int, show: str = NODES, limit: int | None = LIMIT) -> dict[str, Any]:
    """Return the nodes or arcs of the graph of each device of a run, or the average warps of its longest launches."""
    if show not in SHOWS:
        raise NotFoundError.near("part of the graph", show, SHOWS)
    run_id = store.find_run(engine, run)
    rows, notes = _warps(engine, run_id, limit) if show == WARPS else _graphs(engine, run_id, show, limit)
    model = {**MODEL, "accuracy": ACCURACY if show == WARPS else MEASURED}
    found: dict[str, Any] = plain({"model": model, "inputs": [{"name": "run", "value": run_id, "unit": ""}],
                                   "columns": COLUMNS[show], "rows": rows, "notes": notes, "figure": None})  # fmt: skip
    return found


def _graphs(engine: "Engine", run_id: int, show: str, limit: int | None) -> tuple[list[dict[str, Any]], list[str]]:
    devices: dict[tuple[int, int | None, int | None], GraphSum] = {}
    for one in store.operations(engine, run_id):
        own = devices.setdefault((one.upload_id, one.process_id, one.device_index), GraphSum())
        own.add(one.name, one.is_transfer, (one.context, one.stream), one.start_ns, one.duration_ns)
    if not devices:
        raise NotFoundError(
            f"run {run_id} has no kernels or transfers with start and duration; upload a trace, such as the "
            "file of: nsys export --type sqlite -o trace.sqlite REPORT.nsys-rep"
        )
    rows, notes = [], []
    for (_, process, index), own in devices.items():
        graph = own.result()
        if graph is None:
            continue
        name = f"{0 if index is None else index}" + (f" of process {process}" if len(devices) > 1 and process else "")
        rows += list(_nodes(graph, name) if show == NODES else _arcs(graph, name))[:limit]
        notes += [f"device {name}: {note}" for note in _notes(graph)]
    return rows, notes


def _nodes(graph: RunGraph, device: str) -> Iterator[dict[str, Any]]:
    work = sum(node.total_ns for node in graph.nodes)
    for node in graph.nodes:
        cells = (device, node.name, "transfer" if node.is_transfer else "kernel", node.times, node.total_ns / 1e3,
                 node.total_ns / node.times / 1e3, node.total_ns / work if work else None, node.visits)  # fmt: skip
        yield dict(zip(COLUMNS[NODES], cells, strict=True))


def _arcs(graph: RunGraph, device: str) -> Iterator[dict[str, Any]]:
    for arc in graph.arcs:
        yield dict(zip(COLUMNS[ARCS], (device, *arc), strict=True))


def _notes(graph: RunGraph) -> Iterator[str]:
    first, *halved = graph.depths
    overlap = graph.kernels_ns + graph.transfers_ns - graph.busy_ns
    yield (
        f"kernels take {graph.kernels_ns / 1e3:.4g} us and transfers {graph.transfers_ns / 1e3:.4g} us, "
        f"{overlap / 1e3:.4g} us of them at the same time"
        + (f", a balance of {graph.kernels_ns / graph.transfers_ns:.3g}" if graph.transfers_ns else "")
        + f"; the device is busy for {graph.busy_ns / 1e3:.4g} of {graph.span_ns / 1e3:.4g} us"
    )
    least, most = (
        float(available_parallelism(first.work_ns, depth).value) for depth in (first.order_ns, first.stream_ns)
    )
    yield (
        f"{counted(graph.streams, 'stream')}: work {first.work_ns / 1e3:.4g} us; longest chain "
        f"{first.stream_ns / 1e3:.4g} us if only streams are in order, {first.order_ns / 1e3:.4g} us if each operation "
        f"waited for those that had ended; available parallelism {least:.3g} to {most:.3g}"
    )
    if first.stream_ns < first.work_ns:
        times = (float(brent_time(first.work_ns, first.stream_ns, p).value) / 1e3 for p in STREAMS)
        yield "time with 1, 2 and 4 operations at once: at most " + ", ".join(f"{time:.4g} us" for time in times)
    for depth in halved:
        if first.order_ns:
            gain = 1 - depth.order_ns / first.order_ns
            yield f"{depth.scenario}: longest chain {depth.order_ns / 1e3:.4g} us, {100 * gain:.1f} % less"


def _warps(engine: "Engine", run_id: int, limit: int | None) -> tuple[list[dict[str, Any]], list[str]]:
    launches, truncated = launches_of(engine, run_id, None, limit)
    rows, lacking, ratios = [], dict[str, None](), []
    for launch in launches:
        warp = average_warp(known_of(engine, launch).inputs().values)
        lacking |= dict.fromkeys(warp.missing)
        measured = launch["duration_ns"] / 1e9 if launch["duration_ns"] else np.nan
        ratio = warp.time_s / measured
        ratios += [ratio] if np.isfinite(ratio) else []
        data, conflicts = (*warp.stalls, np.nan, np.nan)[:2]
        cells = (launch["launch_index"], launch["kernel_short"], warp.bound, warp.balance, data, conflicts,
                 warp.time_s * 1e6, measured * 1e6, ratio)  # fmt: skip
        rows.append(dict(zip(COLUMNS[WARPS], cells, strict=True)))
    notes = [
        "balance is computation over memory time: 1 where a kernel is balanced; stalls are cycles of a warp; ratio is "
        "predicted over measured time"
    ]
    if ratios:
        errors = np.abs(np.log(ratios))
        notes.append(
            f"here: off by a factor of {np.exp(np.median(errors)):.3g} in the median and {np.exp(errors.max()):.3g} at "
            f"worst, over {counted(len(ratios), 'launch')}"
        )
    if lacking:
        notes.append(f"some launches have no answer, because their exports lack: {', '.join(lacking)}")
    if truncated:
        notes.append(f"only the longest {limit} launches")
    return rows, notes
