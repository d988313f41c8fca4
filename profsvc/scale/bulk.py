"""All files, or all runs, and then what runs take from each other.

Runs are numbered in the order of their files before any is stored, and what depends on other runs is computed again at
the end: characterizations that came with the files, and the power of a board, for which earlier runs of it count. So
the results do not depend on which worker was first.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from profsvc import pipeline, store
from profsvc.errors import ServiceError
from profsvc.scale.files import FileGroup
from profsvc.scale.work import (
    FAILED,
    Opened,
    Outcome,
    StoreFiles,
    analyze_boards,
    analyze_boards_again,
    analyze_run,
    analyze_run_again,
)

# Takes a function and items; yields each item with its result, or with None where workers died of it, as they end.
Mapped = Callable[[Callable[[Opened, Any], Any], Sequence[Any]], Iterator[tuple[Any, Any]]]
DIED = "the worker that read it died again and again, perhaps for want of memory; load it alone to see why: {}"


def ingest(
    opened: Opened,
    mapped: Mapped,
    groups: Sequence[FileGroup],
    info: store.RunInfo,
    how: pipeline.ReadOptions,
    *,
    dated: bool = False,
) -> Iterator[Outcome]:
    """Store the files and yield the outcome of each, as it is done; then settle the results of their runs."""
    numbers = store.reserve_run_ids(opened.engine, len(groups))
    numbered = [group._replace(number=number) for group, number in zip(groups, numbers, strict=True)]
    runs, characterized = set[int](), False
    for group, outcomes in mapped(StoreFiles(info, how, dated), numbered):
        for outcome in outcomes or _died(group):
            if outcome.result is not None and outcome.result.run_id is not None:
                runs.add(outcome.result.run_id)
                characterized |= bool(outcome.result.characterized) and not outcome.result.known
            yield outcome
    runs -= store.archived_runs(opened.engine)  # known files whose rows are elsewhere
    if characterized:
        for _ in mapped(analyze_run, sorted(runs)):
            pass
    _settle_boards(opened, mapped, sorted(runs), analyze_boards)


def analyze(opened: Opened, mapped: Mapped, runs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Recompute runs and yield each with its launches, as it is done; then settle the power of boards."""
    for run_id, launches in mapped(analyze_run_again, runs):
        if launches is None:
            raise ServiceError(
                f"the worker that analyzed run {run_id} died again and again; run: profsvc analyze {run_id}"
            )
        yield run_id, launches
    _settle_boards(opened, mapped, runs, analyze_boards_again)


def _settle_boards(
    opened: Opened, mapped: Mapped, runs: Sequence[int], work: Callable[[Opened, tuple[int, ...]], object]
) -> None:
    """Analyse power again where an earlier of these ``runs`` may be of the same board."""
    chains = [tuple(chain[1:]) for chain in store.runs_by_board(opened.engine, runs) if len(chain) > 1]
    for _ in mapped(work, chains):
        pass


def _died(group: FileGroup) -> list[Outcome]:
    return [
        Outcome(file, group.run, FAILED, DIED.format(f"profsvc upload {file}"), ServiceError.exit_code)
        for file in group.files
    ]
