"""All files, or all runs, and then what runs take from each other.

Runs are numbered in the order of their files before any is stored. The power of a board depends on its earlier runs, so
it is analysed in the order of the runs: for those whose files are all stored, while later files still load. What a
characterization changes is computed again at the end. So the results do not depend on which worker was first.
"""

import shlex
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import dropwhile
from typing import Any

from profsvc import pipeline, store
from profsvc.errors import ServiceError
from profsvc.scale.files import FileGroup
from profsvc.scale.work import (
    FAILED,
    Opened,
    Outcome,
    StoreFiles,
    StoreOrAnalyze,
    analyze_boards,
    analyze_boards_again,
    analyze_run,
    analyze_run_again,
)

# Takes a function and items; yields each item with its result, or with None where workers died of it, as they end. It
# takes the next items when others have ended.
Mapped = Callable[[Callable[[Opened, Any], Any], Iterable[Any]], Iterator[tuple[Any, Any]]]
DIED = "the worker that read it died again and again, perhaps for want of memory; load it alone to see why: {}"
# The power of that many new runs is analysed at once: few enough that little is left when the last file is stored.
RUNS_PER_ANALYSIS = 20


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
    order, runs, characterized = _InOrder(opened, numbered), set[int](), False
    for item, done in mapped(StoreOrAnalyze(StoreFiles(info, how, dated)), order.items()):
        if not isinstance(item, FileGroup):
            order.analyzed(item, done)
            continue
        outcomes = done or _died(item)
        order.stored(item, outcomes)
        for outcome in outcomes:
            if outcome.result is not None and outcome.result.run_id is not None:
                runs.add(outcome.result.run_id)
                characterized |= bool(outcome.result.characterized) and not outcome.result.known
            yield outcome
    runs -= store.archived_runs(opened.engine)  # known files whose rows are elsewhere
    if characterized:
        for _ in mapped(analyze_run, sorted(runs)):
            pass
        boards = _boards(opened, runs)
    else:
        waiting = store.unfinished(opened.engine)
        boards = [_from_first_unfinished(chain, waiting) for chain in _boards(opened, runs - order.finished)]
    _analyze_power(mapped, analyze_boards, [chain for chain in boards if chain])


def _from_first_unfinished(runs: tuple[int, ...], waiting: Container[int]) -> tuple[int, ...]:
    """Return the runs of a board from the first that waits on: what is known of it counts for all later ones."""
    return tuple(dropwhile(lambda run_id: run_id not in waiting, runs))


class _InOrder:
    """Gives out files, and between them the runs whose power can be analysed: all runs before them are stored."""

    def __init__(self, opened: Opened, groups: Sequence[FileGroup]) -> None:
        self.finished = set[int]()
        self._opened, self._groups = opened, groups
        self._stored = set[int]()
        self._begin = self._end = 0  # of the groups that are stored and not yet given out for analysis
        self._running = 0
        self._ordered = True

    def items(self) -> Iterator[FileGroup | tuple[int, ...]]:
        """Yield all files, and the runs of a board whenever enough of them are stored."""
        for group in self._groups:
            if self._ordered and not self._running and self._end - self._begin >= RUNS_PER_ANALYSIS:
                new = [int(done.number or 0) for done in self._groups[self._begin : self._end]]
                self._begin = self._end
                boards = _boards(self._opened, new)
                self._running = len(boards)
                yield from boards
            yield group

    def stored(self, group: FileGroup, outcomes: Sequence[Outcome]) -> None:
        """Note that the files of a group are done; those of a run that was there before keep no order."""
        runs = {outcome.result.run_id for outcome in outcomes if outcome.result is not None}
        self._ordered &= runs <= {group.number}
        self._stored.add(int(group.number or 0))
        while self._end < len(self._groups) and self._groups[self._end].number in self._stored:
            self._end += 1

    def analyzed(self, runs: tuple[int, ...], done: object) -> None:
        """Note that the power of runs is analysed; after a failure nothing further is in order."""
        self._running -= 1
        if done is None:
            self._ordered = False
        else:
            self.finished.update(runs)


def analyze(opened: Opened, mapped: Mapped, runs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Recompute runs and yield each with its launches, as it is done; then settle the power of boards."""
    for run_id, launches in mapped(analyze_run_again, runs):
        if launches is None:
            raise ServiceError(
                f"the worker that analyzed run {run_id} died again and again; run: profsvc analyze id:{run_id}"
            )
        yield run_id, launches
    # The first run of a board took nothing from the others.
    _analyze_power(mapped, analyze_boards_again, [runs[1:] for runs in _boards(opened, runs) if len(runs) > 1])


def _analyze_power(
    mapped: Mapped, work: Callable[[Opened, tuple[int, ...]], object], boards: Sequence[tuple[int, ...]]
) -> None:
    for runs, done in mapped(work, boards):
        if done is None:
            raise ServiceError(
                f"the worker that analyzed the power of runs {runs[0]} to {runs[-1]} died again and again; run: "
                f"profsvc analyze {' '.join(f'id:{run_id}' for run_id in runs)}"
            )


def _boards(opened: Opened, runs: Iterable[int]) -> list[tuple[int, ...]]:
    """Return the runs that logged power, in ascending order, those of one board in one item."""
    return list(map(tuple, store.runs_by_board(opened.engine, sorted(runs))))


def _died(group: FileGroup) -> list[Outcome]:
    retries = ((file, f"profsvc upload {shlex.quote(str(file))}") for file in group.files)
    return [Outcome(file, group.run, FAILED, DIED.format(retry), ServiceError.exit_code) for file, retry in retries]
