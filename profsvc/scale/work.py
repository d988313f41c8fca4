"""What is done with the files of one run, or with one run: the same here and on a worker.

A worker opens the store that its own settings name, so that no password is sent to it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from profsvc import pipeline, settings, store
from profsvc.errors import InputError, ProfsvcError, ServiceError
from profsvc.pipeline.ingestion.folder_files import refusal
from profsvc.pipeline.malloc import keep_blocks
from profsvc.scale.files import FileGroup, readable

if TYPE_CHECKING:
    from sqlalchemy import Engine

Item = TypeVar("Item")
Result = TypeVar("Result")
DEBUG = "PROFSVC_DEBUG=1 profsvc upload"
STORED, KNOWN, REFUSED, FAILED = "stored", "known", "refused", "failed"


class Opened(NamedTuple):
    """A store, and where it keeps the bytes of uploads."""

    engine: "Engine"
    files: store.BlobStore


class Target(NamedTuple):
    """The store that every worker must have, and the version of the program."""

    store_id: str
    version: str


@dataclass(frozen=True)
class Outcome:
    """The outcome of a file: ``stored``, ``known``, ``refused`` or ``failed``, and the exit code of its error."""

    file: str
    run: str
    status: str
    message: str = ""
    exit_code: int = 0
    result: pipeline.ImportResult | None = None


@dataclass(frozen=True)
class StoreFiles:
    """Stores the files of a run one after the other, as ``info`` and ``how`` say; a bad file stops no other.

    With ``dated``, a file was measured when it was written. The power of the runs is left to `StoreOrAnalyze`.
    """

    info: store.RunInfo
    how: pipeline.ReadOptions
    dated: bool = False

    def __call__(self, opened: Opened, group: FileGroup) -> list[Outcome]:
        """Store them; a run of several files is analysed once, after its last."""
        outcomes = [self._store(opened, group, file) for file in group.files]
        runs = {one.result.run_id for one in outcomes if one.result is not None} if len(group.files) > 1 else ()
        try:
            for run_id in runs:
                pipeline.analyze_stored(opened.engine, opened.files, int(run_id or 0), power_later=True)
        except Exception as error:  # of one run; it must not lose the others
            return [_without_results(outcome, error) for outcome in outcomes]
        return outcomes

    def _store(self, opened: Opened, group: FileGroup, file: str) -> Outcome:
        info = replace(self.info, name=group.run, new_run_id=group.number)
        path = Path(file)
        if reason := refusal(path):
            return Outcome(file, group.run, REFUSED, reason, InputError.exit_code)
        try:
            with path.open("rb") as stream:
                if self.dated:
                    written = datetime.fromtimestamp(os.fstat(stream.fileno()).st_mtime, UTC)
                    info = replace(info, at=store.parse_measured_at(written.isoformat()))
                done = pipeline.ingest(
                    opened.engine, stream, readable(path.name), info, self.how, files=opened.files, power_later=True,
                    results_later=len(group.files) > 1,
                )  # fmt: skip
        except OSError as error:
            return Outcome(file, group.run, REFUSED, f"it cannot be read: {error.strerror}", InputError.exit_code)
        except InputError as error:
            return Outcome(file, group.run, REFUSED, str(error), error.exit_code)
        except ProfsvcError as error:
            return Outcome(file, group.run, FAILED, str(error), error.exit_code)
        except Exception as error:  # a defect that one file shows must not lose the others
            return Outcome(file, group.run, FAILED, _internal_error(error, file), ServiceError.exit_code)
        return Outcome(file, group.run, KNOWN if done.known else STORED, done.message, 0, done)


def _internal_error(error: Exception, file: str) -> str:
    return f"internal error: {type(error).__name__}: {error}; report the traceback of: {DEBUG} {file}"


def _without_results(outcome: Outcome, error: Exception) -> Outcome:
    """Return the outcome of a stored file whose run could not be analysed; of another file, its own."""
    if outcome.result is None:
        return outcome
    own = isinstance(error, ProfsvcError)
    said = f"stored, but its run could not be analyzed: {error if own else _internal_error(error, outcome.file)}"
    code = error.exit_code if isinstance(error, ProfsvcError) else ServiceError.exit_code
    return replace(outcome, status=FAILED, message=said, exit_code=code)


@dataclass(frozen=True)
class StoreOrAnalyze:
    """Stores the files of a run, or analyses the power of runs of one board; None if that fails, to be done again."""

    files: StoreFiles

    def __call__(self, opened: Opened, item: FileGroup | tuple[int, ...]) -> list[Outcome] | int | None:
        """Do it."""
        if isinstance(item, FileGroup):
            return self.files(opened, item)
        try:
            return analyze_boards(opened, item)
        except Exception:
            return None


def analyze_run(opened: Opened, run_id: int) -> int:
    """Compute a run as an upload does; return its number of launches."""
    return pipeline.analyze(opened.engine, run_id)


def analyze_run_again(opened: Opened, run_id: int) -> int:
    """Recompute a run because somebody asks; return its number of launches."""
    return pipeline.analyze_again(opened.engine, opened.files, run_id)


def analyze_boards(opened: Opened, runs: tuple[int, ...], *, asked: bool = False) -> int:
    """Analyse the power of these runs one after the other: each takes what the runs before it found."""
    for run_id in runs:
        pipeline.analyze_power(opened.engine, run_id, asked=asked)
    return len(runs)


def analyze_boards_again(opened: Opened, runs: tuple[int, ...]) -> int:
    """Do that because somebody asks, however long the logs are."""
    return analyze_boards(opened, runs, asked=True)


def target_of(opened: Opened) -> Target:
    """Return what a worker must have to work on this store."""
    return Target(store.store_id(opened.engine), settings.version())


def on_worker(function: Callable[[Opened, Item], Result], wanted: Target, item: Item) -> Result:
    """Do the work of one item in the process of a worker."""
    return function(_open_own(wanted), item)


@cache
def _open_own(wanted: Target) -> Opened:
    """Open the store that this worker's settings name; raise an error if it is another, or the program is."""
    keep_blocks()
    known = settings.load()
    engine = store.open_store(str(known["store"]) or None, pooled=True)
    opened = Opened(
        engine, store.blob_store_of(engine, str(known["files"]), int(known["free_bytes"]), bool(known["keep"]))
    )
    has = target_of(opened)
    if has.version != wanted.version:
        raise ServiceError(f"a worker runs profsvc {has.version}, but this is {wanted.version}; install one version")
    if has.store_id != wanted.store_id:
        raise ServiceError(
            f"a worker has the store {store.address(engine)}, which is another than this; set PROFSVC_STORE of the "
            "workers to the same database, with the role that profsvc db create-loader made"
        )
    return opened
