"""``POST /v1/uploads``: store a file, given as the raw body or in a form.

The body is streamed to an unnamed file in the spool and parsed in a thread; few are parsed at once. 201 means committed
and on disk. Results of uploads that wait for the same run are computed after the last of them. Uploading the same bytes
to the same run again returns 200 and the existing upload. Bytes that another project has are stored for this project
too, without disclosing that they were known.
"""

import asyncio
import dataclasses
import hashlib
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import IO, Any, BinaryIO, cast

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import pipeline, store
from profsvc.errors import AccessError, InputError, ProfsvcError, ServiceError, UsageError
from profsvc.web.http.json_log import LOG
from profsvc.web.http.multipart import read_form
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import success
from profsvc.web.http.routes import SUCCESS_SCHEMA, add_route, query_param
from profsvc.web.http.state import AppState, app_state, grant_of

WRITE_BYTES = 1 << 20
FORM_MEDIA_TYPE = "multipart/form-data"
DISK_CHECK_BYTES = 64 << 20
# A client that said that more files follow sends the next one mostly at once.
MORE_WITHIN_SECONDS = 10.0
PARAMETERS = (
    query_param("run", "string", "name of the run; default: named after the file", "nightly"),
    query_param("run_id", "integer", "number of the run, instead of its name"),
    query_param("project", "string", "project of the run", "default"),
    query_param("file_name", "string", "name of the file", "ncu_raw.csv"),
    query_param("device", "string", "device, if the file does not name it"),
    query_param("commit", "string", "commit that was measured"),
    query_param("at", "string", "time of the measurement, UTC without a zone; default: now", "2026-10-24T03:00:00Z"),
    query_param("tag", "array", "key=value, a tag of the run; repeatable", items={"type": "string"}),
    query_param("format", "string", "format of the file; default: detected"),
    query_param("timezone", "string", "time zone of logs without one, such as Europe/Berlin"),
    query_param("clock_offset", "number", "seconds by which the clock of the file was ahead"),
    query_param(
        "column", "array", "NAME=QUANTITY:UNIT, the meaning of a column of a log; repeatable", items={"type": "string"}
    ),
    query_param(
        "position", "array", "CHANNEL=X,Y, position of a channel on the die in mm; repeatable", items={"type": "string"}
    ),
    query_param("sha256", "string", "SHA-256 of the bytes; an upload with another one is rejected as damaged"),
    query_param(
        "anywhere",
        "string",
        "1: if the project already has these bytes, keep them in their run",
        enum=["0", "1"],
    ),
    query_param(
        "more",
        "string",
        "1: more files of this run follow; its results are computed with the last one, or soon without it",
        enum=["0", "1"],
    ),
    query_param("check", "string", "1: only report what would be stored", enum=["0", "1"]),
)
EXAMPLE_RESPONSE = {
    "ok": True,
    "known": False,
    "upload_id": 1,
    "run_id": 1,
    "run": "h200",
    "file_name": "ncu_raw.csv.gz",
    "sha256": "0" * 64,
    "format": "ncu-raw",
    "launches": 34,
    "metrics": 75310,
    "samples": 0,
    "lines": 36,
    "lines_stored": 34,
    "lines_skipped": 2,
    "lines_rejected": 0,
    "message": "",
    "run_changed": [],
    "url": "/v1/runs/1",
}


@dataclasses.dataclass(frozen=True)
class UploadRequest:
    """What to do with an upload: its run, read options and name."""

    run: store.RunInfo
    how: pipeline.ReadOptions
    file_name: str
    sha256: str
    check: bool
    more: bool

    @property
    def has_run(self) -> bool:
        """Tell whether the client names the run."""
        return bool(self.run.name or self.run.run_id)

    @property
    def burst(self) -> tuple[object, ...]:
        """Return what uploads to one run have in common; those that name none have a run each, and a check has none."""
        if self.check or not self.has_run:
            return (id(self),)
        return self.run.project, self.run.name, self.run.run_id


def upload_request(state: AppState, args: RequestArgs, project: str | None) -> UploadRequest:
    """Return the parameters of an upload; a token of one project cannot store into another."""
    given = args.text("project", project or "default")
    if project is not None and given != project:
        raise AccessError(f"your token is limited to the project {project!r} and cannot upload to {given!r}")
    name, number = args.text("run"), args.number("run_id", int, 0, "a whole number")
    if name and number:
        raise UsageError("give run or run_id, not both")
    if number:
        number = store.find_run(state.engine, number, project)
    run = store.RunInfo(
        run_id=number or None,
        project=given,
        name=name or None,
        device=args.text("device") or None,
        commit_id=args.text("commit") or None,
        tags=args.pairs("tag", "branch=main"),
        anywhere=args.flag("anywhere"),
        at=store.parse_measured_at(at) if (at := args.text("at")) else None,
    )
    how = pipeline.ReadOptions(
        args.text("format") or None,
        args.text("timezone") or None,
        args.number("clock_offset", float, 0.0, "a number of seconds"),
        tuple(args.texts("column")),
        tuple(args.texts("position")),
        state.limits.unpacked_bytes,
    )
    wanted = UploadRequest(
        run,
        how,
        args.text("file_name", "upload"),
        args.text("sha256").lower(),
        args.flag("check"),
        args.flag("more"),
    )
    args.reject_unknown()
    store.check_run_names(run, wanted.file_name)
    return wanted


async def upload(request: Request) -> Response:
    """Store a file: the body of the request, optionally gzip or zstd, or the single file of a form."""
    state, grant = app_state(request), grant_of(request)
    with count_outcome(state) as count, ExitStack() as held:
        is_form = request.headers.get("content-type", "").strip().lower().startswith(FORM_MEDIA_TYPE)
        async with state.receiving_limit.slot():
            if is_form:
                args, file = await _read_form_upload(state, request, held)
                wanted = await to_thread.run_sync(upload_request, state, args, grant.project)
                await to_thread.run_sync(_check_digest, file, wanted.sha256)
            else:
                wanted = await to_thread.run_sync(upload_request, state, RequestArgs(request), grant.project)
                spool = await to_thread.run_sync(store.spool_folder, state.files)
                file = held.enter_context(store.arriving_file(spool))
                await _receive_body(state, request, file, wanted.sha256)
            verdict = await store_in_turn(state, file, wanted)
        count("checked" if wanted.check else "known" if verdict.known else "stored")
    body = vars(verdict) | {"characterized": sorted(verdict.characterized)}
    if body["run_id"] is None:
        return success(request, body | {"url": None})
    url = f"{request.scope['root_path']}/v1/runs/{body['run_id']}"
    return success(request, body | {"url": url}, 200 if verdict.known else 201, {"location": url})


async def store_in_turn(state: AppState, file: IO[bytes], wanted: UploadRequest) -> pipeline.ImportResult:
    """Store a file when it is its turn; the last of those that wait for one run has the results of all computed."""
    async with _turn(state, wanted):
        began = time.monotonic()
        verdict = await state.parsing_limit.in_thread(store_or_check, state, file, wanted)
        state.metrics.parse_seconds.observe(time.monotonic() - began)
        return verdict


@asynccontextmanager
async def _turn(state: AppState, wanted: UploadRequest) -> AsyncIterator[None]:
    """Hold a slot for one upload of a burst; if the last one is refused, the results of the others are computed in it.

    So they are if a client said that more follow, and sends none. If the last one is cancelled while it waits, the run
    stays unfinished, and is computed with all such runs.
    """
    go = partial(state.bursts.go, wanted.burst, more=wanted.more)
    number = state.bursts.come(wanted.burst)
    with ExitStack() as waiting:
        waiting.callback(go)
        async with state.parsing_limit.slot():
            waiting.pop_all()
            try:
                yield
            finally:
                if lacking := go():
                    await state.parsing_limit.in_thread(_compute_results, state, lacking)
                elif wanted.more:
                    waits = asyncio.create_task(_expect_more(state, wanted.burst, number))
                    state.expecting.add(waits)  # else the task may be collected while it waits
                    waits.add_done_callback(state.expecting.discard)


async def _expect_more(state: AppState, burst: tuple[object, ...], number: int) -> None:
    """Compute the results of a burst if nothing comes soon after the upload of this number."""
    await asyncio.sleep(MORE_WITHIN_SECONDS)
    if lacking := state.bursts.give_up(burst, number):
        with suppress(ServiceError):  # too much waits: the run stays unfinished
            async with state.parsing_limit.slot():
                await state.parsing_limit.in_thread(_compute_results, state, lacking)


def _compute_results(state: AppState, runs: set[int]) -> None:
    """Compute what a burst of uploads left; what fails is logged, and the run stays unfinished."""
    for run_id in sorted(runs):
        try:
            pipeline.analyze_stored(state.engine, state.files, run_id)
        except ProfsvcError as error:
            LOG.warning("results", extra={"fields": {"run_id": run_id, "why": str(error)}})


async def _read_form_upload(state: AppState, request: Request, held: ExitStack) -> tuple[RequestArgs, IO[bytes]]:
    """Return the file of a form, as sent by ``curl -F file=@FILE``, and its fields as parameters."""
    form = await read_form(request, partial(store.spool_folder, state.files), held)
    if len(form.files) != 1:
        raise UsageError(
            f"the form has {len(form.files)} files, but must have one: curl -F file=@FILE URL, "
            "or as the body: curl --data-binary @FILE URL"
        )
    file = form.files[0]
    questions = [*request.query_params.multi_items(), *((name, value) for name, value in form.fields if value)]
    named = any(name == "file_name" for name, _ in questions)
    return RequestArgs(
        questions if named or not file.file_name else [*questions, ("file_name", file.file_name)]
    ), file.file


def _check_digest(file: IO[bytes], sha256: str) -> None:
    """Raise `InputError` if the file of a form does not have the given SHA-256."""
    file.seek(0)
    if sha256 and (found := hashlib.file_digest(cast("Any", file), "sha256").hexdigest()) != sha256:
        raise InputError(f"the received file has SHA-256 {found}, expected {sha256}; send it again")


@contextmanager
def count_outcome(state: AppState) -> Iterator[Any]:
    """Count the outcome of an upload."""
    results: list[str] = []
    try:
        yield results.append
    except InputError:
        results.append("refused")
        raise
    finally:
        state.metrics.uploads.labels(results[0] if results else "failed").inc()


async def _receive_body(state: AppState, request: Request, file: IO[bytes], sha256: str) -> None:
    """Write the body to a file in a thread and check its SHA-256."""
    waiting, size, looked, digest = bytearray(), 0, 0, hashlib.sha256()

    def put() -> None:
        store.write_chunk(waiting, file)
        if sha256:
            digest.update(waiting)

    async for chunk in request.stream():
        waiting += chunk
        size += len(chunk)
        if len(waiting) >= WRITE_BYTES:
            await to_thread.run_sync(put)
            waiting.clear()
        if size - looked >= DISK_CHECK_BYTES:
            await to_thread.run_sync(store.spool_folder, state.files)  # raises if the disk is nearly full
            looked = size
    await to_thread.run_sync(put)
    state.metrics.upload_bytes.inc(size)
    if sha256 and digest.hexdigest() != sha256:
        raise InputError(f"received {size} bytes with SHA-256 {digest.hexdigest()}, expected {sha256}; send them again")


def store_or_check(state: AppState, file: IO[bytes], wanted: UploadRequest) -> pipeline.ImportResult:
    """Store a file, or only report what would be stored."""
    file.flush()
    file.seek(0)
    source = cast("BinaryIO", file)
    if wanted.check:
        return pipeline.check_file(source, wanted.file_name, wanted.how, files=state.files)
    is_last = not wanted.more and state.bursts.is_last(wanted.burst)
    verdict = pipeline.ingest(
        state.engine, source, wanted.file_name, wanted.run, wanted.how, files=state.files, results_later=not is_last
    )
    if not is_last and verdict.run_id is not None and wanted.has_run:
        state.bursts.leave_results(wanted.burst, verdict.run_id)
    return verdict


def register(app: FastAPI) -> None:
    """Add the route."""
    body = {
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        "text/csv": {"schema": {"type": "string"}},
        FORM_MEDIA_TYPE: {"schema": {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}},
    }
    gives = {"application/json": {"schema": SUCCESS_SCHEMA, "example": EXAMPLE_RESPONSE}}
    add_route(
        app,
        "/v1/uploads",
        upload,
        "upload",
        name="upload_file",
        methods=["POST"],
        takes=PARAMETERS,
        gives=gives,
        body=body,
        tag="uploads",
        statuses=(200, 201),
    )
