"""The results of a run: counters, criteria, potential and models of its launches, its power, its memory traces."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from profsvc import analysis, specs, store
from profsvc.analysis.kernel_means import MEANS_TOOL
from profsvc.pipeline import memory_traces
from profsvc.pipeline.ingestion.kept_bytes import open_kept_bytes
from profsvc.pipeline.kernel_means import means_of_run, results_of_kernels
from profsvc.pipeline.power import analyze_power
from profsvc.pipeline.wall_time import wall_time_of_run
from profsvc.specs.metrics.instruction_classes import CAPABILITY as CLASSES_CAPABILITY
from profsvc.tables.labels import python_labels

if TYPE_CHECKING:
    from sqlalchemy import Engine

MIN_LAUNCHES_PER_BLOCK = 200
MAX_LAUNCHES_PER_BLOCK = 1_500
MAX_METRICS_PER_BLOCK = 50_000
# What an export says of its own device; the same in every launch, up to the clock.
DEVICE_FIGURES = (
    "sm_count", "max_warps_per_sm", "dram_peak_bytes_per_s", "fp32_peak_flop_per_s", "fp64_peak_flop_per_s",
    "l2_size_bytes", "sm_clock_max_hz", "mem_clock_max_hz",
)  # fmt: skip
Progress = Callable[[int], None]


@store.keep_connections
def analyze_again(engine: "Engine", files: store.BlobStore, run_id: int) -> int:
    """Recompute a run because somebody asks: its memory traces where they were not simulated, then all else."""
    store.require_rows_of(engine, run_id, "its analysis needs")
    memory_traces.simulate_traces(engine, run_id, open_kept_bytes(files))
    return analyze(engine, run_id, asked=True)


@store.keep_connections
@python_labels()
def analyze(
    engine: "Engine",
    run_id: int,
    progress: Progress | None = None,
    *,
    asked: bool = False,
    power_later: bool = False,
    keep: bool = False,
) -> int:
    """Recompute the counters, criteria, potential and power of a run; return how many launches it has.

    Launches without metrics get no rows of results, and none of them is read: they count by sums over their file.
    Where another file comes to the run meanwhile, it is all computed again: of two analyses no older one is the last.
    With ``power_later`` the power of a run that logged it is left out, and stays marked as unfinished. With ``keep``
    the results of launches stay that no file which came since the last analysis tells of.
    """
    if asked:
        store.mark_duplicates_of_run(engine, run_id)
    while (total := _analyze_launches(engine, run_id, asked=asked, keep=keep)) is None:
        continue
    if not (power_later and store.runs_by_board(engine, [run_id])):
        analyze_power(engine, run_id, asked=asked)
    if progress:
        progress(total)
    return total


def _analyze_launches(engine: "Engine", run_id: int, *, asked: bool, keep: bool) -> int | None:
    """Recompute what is known of the launches of a run; None where it has other files by now."""
    changes = store.change_count(engine, run_id)
    uploads = store.select(engine, "v1_uploads", run_id=run_id)
    tools = {upload["upload_id"]: str(upload["format"]).split("-")[0] for upload in uploads if upload["launches"]}
    attributes, measured = store.device_attributes(engine, run_id), store.characterizations(engine)
    found, lent = _launches_with_metrics(engine, tools, attributes)
    best, others = analysis.best_file_per_launch(found, store.files_by_metrics(engine, run_id))
    basis = _basis(engine, run_id, attributes, measured)
    known = store.kept_results(engine, run_id, analysis.VERSION, basis) if keep else None
    scope, fresh, again = _to_compute(best, others, known, basis)
    counters = analysis.joined_blocks(_counters(engine, fresh, again, lent, tools), MIN_LAUNCHES_PER_BLOCK)
    launches = _as_counted(engine, run_id, best)
    rest = _other_launches(engine, run_id, uploads, launches)
    of_kernels: Iterator[dict[str, pd.DataFrame]] = iter(())
    if means := means_of_run(engine, run_id):
        of_kernels = results_of_kernels(engine, run_id, means, rest, whole=launches.empty)
        rest = rest._replace(launches=0)
    kept = known._asdict() if known and scope.launches is not None else None
    results = analysis.analyze_launches(launches, counters, measured, specs.criteria(), rest, kept)
    results = chain(results, of_kernels)
    figures: list[pd.DataFrame] = []
    parts = chain(_noting_devices(results, launches, figures), memory_traces.rows_of_run(engine, run_id))
    parts = chain(parts, _describing_devices(engine, figures))
    if not store.save_wall_time(engine, run_id, wall_time_of_run(engine, run_id, asked=asked), changes):
        return None
    if not store.save_results(engine, run_id, parts, analysis.VERSION, changes, scope):
        return None
    return sum(int(upload["launches"]) for upload in uploads)


def _basis(engine: "Engine", run_id: int, attributes: pd.DataFrame, measured: pd.DataFrame) -> str:
    """Return a digest of all that the results of every launch depend on beside its own files and the program."""
    device = store.device_of_run(engine, run_id)
    told = (analysis.VERSION, device, attributes.to_csv(index=False), measured.to_csv(index=False))
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _to_compute(
    best: pd.DataFrame, others: pd.DataFrame, known: store.KeptResults | None, basis: str
) -> tuple[store.Scope, pd.DataFrame, pd.DataFrame]:
    """Return which launches have to be computed, as rows of ``best`` and ``others``: all, or those with no results."""
    kept = known.potential["launch_id"] if known else pd.Series([], dtype="int64")
    if kept.empty or not kept.isin(best["first_id"]).all():
        return store.Scope(basis), best, others
    fresh, again = (rows[~rows["first_id"].isin(kept)] for rows in (best, others))
    numbers = {*fresh["launch_id"], *fresh["first_id"], *again["launch_id"]}
    return store.Scope(basis, sorted(map(int, numbers))), fresh, again


def _counters(
    engine: "Engine", best: pd.DataFrame, others: pd.DataFrame, lent: pd.DataFrame, tools: Mapping[int, str]
) -> Iterator[analysis.CountersBlock]:
    """Yield the counters of launches and their tool, as many at once as have few enough metrics for the memory.

    What the ``best`` file of a launch lacks is filled in from ``others`` of the same tool, whose own are kept as well,
    and then from its source page.
    """
    for tool, same in _alike(engine, best, tools):
        of_tool = others[others["upload_id"].map(tools) == tool]
        begin, size = 0, MIN_LAUNCHES_PER_BLOCK
        while begin < len(same):
            some = same.iloc[begin : begin + size]
            own, metrics = _block_counters(engine, some, lent, tool)
            parts = _again(of_tool, some) if len(of_tool) else []
            said = [_block_counters(engine, part, lent, tool)[0] for part in parts]
            first = [part["first_id"] for part in parts]
            moved = bool((some["first_id"] != some["launch_id"]).any())
            kept = analysis.unmerged_counters([*([own] if moved else []), *said], some["first_id"])
            merged = analysis.merge_counters(own, zip(said, first, strict=True), some["first_id"])
            if tool == "ncu" and some["compute_capability"].iloc[0] == CLASSES_CAPABILITY:
                executed = store.executed_by_opcode(engine, some["first_id"].tolist())
                merged = analysis.with_source_page(merged, executed)
                if not executed.empty:
                    code = store.machine_code(engine, some["first_id"].tolist())
                    merged = analysis.with_machine_code(merged, code)
            yield *merged, tool, kept
            begin += size
            # Launches of a trace have few metrics or none: then many of them take no more memory.
            size = max(
                MIN_LAUNCHES_PER_BLOCK,
                min(MAX_LAUNCHES_PER_BLOCK, MAX_METRICS_PER_BLOCK * len(some) // (metrics + 1)),
            )


def _again(others: pd.DataFrame, some: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the launches of other files that count for ``some``, parted so that each counts for another launch."""
    more = others[others["first_id"].isin(some["first_id"])].sort_values("launch_id")
    rank = more.groupby("first_id").cumcount()
    return [part for _, part in more.groupby([rank, "device", "compute_capability"], dropna=False)]


def _alike(engine: "Engine", best: pd.DataFrame, tools: Mapping[int, str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the tool and the launches of a device in one file, or in all small files of the tool with its metrics."""
    some = best[["upload_id", "device", "compute_capability"]].head(MIN_LAUNCHES_PER_BLOCK)
    kinds = set(some.itertuples(index=False, name=None))
    if len(kinds) == 1 and len(some) == len(best):  # most runs, and to group them takes milliseconds
        yield tools[int(next(iter(kinds))[0])], best
        return
    launches = best["upload_id"].value_counts()
    small = sorted(launches.index[launches < MIN_LAUNCHES_PER_BLOCK])
    layouts = store.metric_layouts(engine, map(int, small)) if len(small) > 1 else {}
    first: dict[object, int] = {}
    stands_for = {
        number: first.setdefault((tools[number], layouts[number]), number) if number in layouts else number
        for number in sorted(map(int, launches.index))
    }
    for number, group in best.groupby(best["upload_id"].map(stands_for)):
        for _, same in group.groupby(["device", "compute_capability"], dropna=False):
            yield tools[int(str(number))], same


def _block_counters(
    engine: "Engine", some: pd.DataFrame, lent: pd.DataFrame, tool: str
) -> tuple[analysis.SourcedCounters, int]:
    """Return the counters of launches of one tool and device, and how many metrics of them are kept as rows."""
    device, capability = some.iloc[0][["device", "compute_capability"]]
    name, known = (part if isinstance(part, str) else None for part in (device, capability))
    catalogue = specs.figures(name, known) if tool == MEANS_TOOL else {}
    known = known or cast("str | None", catalogue.get("compute_capability"))
    metrics = store.metrics(engine, None, some["launch_id"].tolist())
    if tool == "ncu" and len(lent):  # the launch's own cells come first, and the first counts
        metrics = pd.concat([metrics, lent[lent["launch_id"].isin(some["launch_id"])]], ignore_index=True)
    wide = store.wide_values(engine, some["launch_id"].tolist(), analysis.used_metric_names(tool, known))
    return analysis.launch_counters(some, metrics, tool, known, wide, catalogue), len(metrics)


def _as_counted(engine: "Engine", run_id: int, best: pd.DataFrame) -> pd.DataFrame:
    """Return the launches as the file has them that stands for them: by its numbers, kernels and times."""
    moved = best.loc[best["first_id"] != best["launch_id"], "first_id"].tolist()
    first = {row["launch_id"]: row for row in store.launch_rows(engine, "v1_launches", run_id, moved)}
    if not first:
        return best
    rows = [first.get(number) for number in best["first_id"]]
    files = [row["upload_id"] if row else own for row, own in zip(rows, best["upload_id"], strict=True)]
    kernel = [row["kernel"] if row else own for row, own in zip(rows, best["kernel"], strict=True)]
    time_ns = [row["duration_ns"] if row else own for row, own in zip(rows, best["duration_ns"], strict=True)]
    return best.assign(
        launch_id=best["first_id"], upload_id=files, kernel=kernel,
        time_ns=pd.to_numeric(pd.Series(time_ns), errors="coerce").to_numpy(),
    )  # fmt: skip


def _launches_with_metrics(
    engine: "Engine", tools: Mapping[int, str], attributes: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the launches of a run that have metrics, their own or lent by a session page, and those that are lent."""
    launches = store.measured_launches(engine, [u for u, tool in tools.items() if specs.feeds_criteria(tool)])
    own = launches["launch_id"]
    if len(attributes):
        pages = [upload for upload, tool in tools.items() if tool == "ncu"]
        launches = pd.concat([launches, store.measured_launches(engine, pages, measured=False)], ignore_index=True)
    named, lent = analysis.fill_from_session(launches, attributes)
    kept = named[named["launch_id"].isin(own) | named["launch_id"].isin(lent["launch_id"])]
    return kept.sort_values("launch_id").reset_index(drop=True), lent


def _other_launches(
    engine: "Engine", run_id: int, uploads: Sequence[Mapping[str, Any]], launches: pd.DataFrame
) -> analysis.OtherLaunches:
    """Return what a run has beside ``launches``, those with metrics; what several files tell of counts once."""
    number, time_ns, advice = 0, 0.0, ""
    measured = {upload: list(some) for upload, some in launches.groupby("upload_id")["launch_id"]}
    devices = launches["device"].dropna()
    device = str(devices.iloc[0]) if len(devices) else None
    for upload in uploads:
        if upload["same_as"] is not None or not upload["launches"]:
            continue
        known = measured.get(upload["upload_id"], [])
        if lacking := upload["launches"] - len(known):
            whole = upload["gpu_time_ns"] or 0.0
            time_ns += store.time_without_metrics(engine, upload["upload_id"], known) if known else whole
            number += lacking
            advice = specs.how_to_measure(str(upload["format"]).split("-")[0], device)
    line = store.timeline(engine, run_id)
    graphs = store.graphs_without_kernels(engine, run_id) if line else 0
    return analysis.OtherLaunches(line, number, time_ns, advice, graphs)


def _noting_devices(
    results: Iterator[dict[str, pd.DataFrame]], launches: pd.DataFrame, figures: list[pd.DataFrame]
) -> Iterator[dict[str, pd.DataFrame]]:
    """Pass results through, and keep in ``figures`` the most that the export says of each device."""
    device_of = launches.set_index("launch_id")["device_id"]
    for part in results:
        if "counters" in part:
            said = part["counters"][part["counters"]["counter"].isin(DEVICE_FIGURES)]
            device = said["launch_id"].map(device_of).rename("device_id")
            figures.append(said["value"].groupby([device, said["counter"]]).max().reset_index())
        yield part


def _describing_devices(engine: "Engine", said: list[pd.DataFrame]) -> Iterator[dict[str, pd.DataFrame]]:
    """Keep what the export says of its devices themselves, before the results count as finished; yield no results."""
    for device_id, group in pd.concat(said).groupby("device_id") if said else ():
        known = {str(name): value for name, value in group.groupby("counter")["value"].max().items()}
        sms = known.pop("sm_count", None)
        store.describe_device(engine, int(str(device_id)), None if sms is None else int(sms), known)
    yield from ()
