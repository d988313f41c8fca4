"""``POST /v1/uploads``: the raw bytes of a file in, the verdict of its reader out.

The body is streamed to an unnamed file in the store's spool, and read from there in a thread, a few at once. 201 means
committed and on the disk; the same bytes into the same run give 200 and the upload they were stored as, however often
they come. Of bytes that another project holds nobody is told: they are stored for this one too, and kept once.
"""

import dataclasses
import hashlib
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, Any, BinaryIO, cast

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import pipeline, store
from profsvc.errors import AccessError, InputError, UsageError
from profsvc.web.answers import success
from profsvc.web.asked import Asked
from profsvc.web.form import received
from profsvc.web.routes import SUCCESS, add, asks
from profsvc.web.site import Site, grant_of, site_of

PIECE = 1 << 20
FORM = "multipart/form-data"
ROOM_EVERY = 64 << 20
MOST_NAME = 500
TAKES = (
    asks("run", "string", "run the file belongs to, by name; default: named after the file", "nightly"),
    asks("run_id", "integer", "run the file belongs to, by number, instead of by name"),
    asks("project", "string", "project of the run", "default"),
    asks("file_name", "string", "name of the file, kept with it", "ncu_raw.csv"),
    asks("device", "string", "device, where the file does not name it"),
    asks("commit", "string", "commit that was measured"),
    asks("at", "string", "when it was measured, UTC where no zone is said; default: now", "2026-10-24T03:00:00Z"),
    asks("tag", "array", "key=value, kept with the run; repeatable", items={"type": "string"}),
    asks("format", "string", "reader to use, instead of recognising the file"),
    asks("timezone", "string", "zone of the clock of logs that name none, such as Europe/Berlin"),
    asks("clock_offset", "number", "seconds that the clock of the file was ahead"),
    asks("column", "array", "NAME=QUANTITY:UNIT, what a column of a log is; repeatable", items={"type": "string"}),
    asks("position", "array", "CHANNEL=X,Y, where a channel sits on the die in mm; repeatable",
         items={"type": "string"}),
    asks("sha256", "string", "SHA-256 of the bytes; others are refused as damaged on the way"),
    asks("anywhere", "string", "1: bytes that the project holds already stay where they are, whatever run is named",
         enum=["0", "1"]),
    asks("check", "string", "1: only say what would be stored", enum=["0", "1"]),
)  # fmt: skip
EXAMPLE = {
    "ok": True, "known": False, "upload_id": 1, "run_id": 1, "run": "h200", "file_name": "ncu_raw.csv.gz",
    "sha256": "0" * 64, "format": "ncu-raw", "launches": 34, "metrics": 75310, "samples": 0, "lines": 36,
    "lines_stored": 34, "lines_skipped": 2, "lines_rejected": 0, "message": "",
    "run_changed": [], "url": "/v1/runs/1",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Wish:
    """What an upload is to become."""

    run: store.RunInfo
    how: pipeline.Reading
    file_name: str
    sha256: str
    check: bool


def wish_of(site: Site, asked: Asked, project: str | None) -> Wish:
    """Read the questions of an upload; a token of one project stores into no other."""
    given = asked.text("project", project or "default")
    if project is not None and given != project:
        raise AccessError(f"the token is for the project {project!r}, and may not upload to {given!r}")
    name, number = asked.text("run"), asked.number("run_id", int, 0, "a whole number")
    if name and number:
        raise UsageError("give run or run_id, not both")
    if number:
        number = store.find_run(site.engine, number, project)
    run = store.RunInfo(
        run_id=number or None,
        project=given,
        name=name or None,
        device=asked.text("device") or None,
        commit_id=asked.text("commit") or None,
        tags=asked.pairs("tag", "branch=main"),
        anywhere=asked.flag("anywhere"),
        at=store.read_at(at) if (at := asked.text("at")) else None,
    )
    how = pipeline.Reading(
        asked.text("format") or None,
        asked.text("timezone") or None,
        asked.number("clock_offset", float, 0.0, "a number of seconds"),
        tuple(asked.texts("column")),
        tuple(asked.texts("position")),
        site.limits.unpacked_bytes,
    )
    wish = Wish(run, how, asked.text("file_name", "upload"), asked.text("sha256").lower(), asked.flag("check"))
    asked.done()
    _storable([given, name, wish.file_name, run.device, run.commit_id, *run.tags, *run.tags.values()])
    return wish


def _storable(names: list[str | None]) -> None:
    for name in filter(None, names):
        if "\0" in name or len(name) > MOST_NAME:
            raise UsageError(f"a name of {len(name)} characters begins {name[:40]!r}; it may have {MOST_NAME}, no NUL")


async def upload(request: Request) -> Response:
    """Store a file: its bytes are the body, as they are or compressed with gzip or zstd, or the one file of a form."""
    site, grant = site_of(request), grant_of(request)
    with counted(site) as count, ExitStack() as held:
        is_form = request.headers.get("content-type", "").strip().lower().startswith(FORM)
        async with site.receiving.turn():
            if is_form:
                asked, file = await _of_form(site, request, held)
                wish = await to_thread.run_sync(wish_of, site, asked, grant.project)
                await to_thread.run_sync(_must_be, file, wish.sha256)
            else:
                wish = await to_thread.run_sync(wish_of, site, Asked(request), grant.project)
                spool = await to_thread.run_sync(store.spool_of, site.files)
                file = held.enter_context(tempfile.TemporaryFile(dir=spool))
                await _receive(site, request, file, wish.sha256)
            async with site.reading.turn():
                began = time.monotonic()
                verdict = await to_thread.run_sync(partial(read, site, file, wish))
                site.meters.parse_seconds.observe(time.monotonic() - began)
        count("checked" if wish.check else "known" if verdict.known else "stored")
    body = vars(verdict) | {"characterized": sorted(verdict.characterized)}
    if body["run_id"] is None:
        return success(request, body | {"url": None})
    url = f"{request.scope['root_path']}/v1/runs/{body['run_id']}"
    return success(request, body | {"url": url}, 200 if verdict.known else 201, {"location": url})


async def _of_form(site: Site, request: Request, held: ExitStack) -> tuple[Asked, IO[bytes]]:
    """Take the file out of a form, as ``curl -F file=@FILE`` sends it; its fields are questions as those of the URL."""
    form = await received(request, partial(store.spool_of, site.files), held)
    if len(form.files) != 1:
        raise UsageError(
            f"the form holds {len(form.files)} files, but one is stored at a time: curl -F file=@FILE URL, "
            "or as it is: curl --data-binary @FILE URL"
        )
    file = form.files[0]
    questions = [*request.query_params.multi_items(), *((name, value) for name, value in form.fields if value)]
    named = any(name == "file_name" for name, _ in questions)
    return Asked(questions if named or not file.file_name else [*questions, ("file_name", file.file_name)]), file.file


def _must_be(file: IO[bytes], sha256: str) -> None:
    """Refuse the file of a form that is not what was sent."""
    file.seek(0)
    if sha256 and (found := hashlib.file_digest(cast("Any", file), "sha256").hexdigest()) != sha256:
        raise InputError(f"the file came with the SHA-256 {found}, not {sha256}; send it again")


@contextmanager
def counted(site: Site) -> Iterator[Any]:
    """Count what became of an upload."""
    results: list[str] = []
    try:
        yield results.append
    except InputError:
        results.append("refused")
        raise
    finally:
        site.meters.uploads.labels(results[0] if results else "failed").inc()


async def _receive(site: Site, request: Request, file: IO[bytes], sha256: str) -> None:
    """Write the body to a file, in pieces large enough to be worth a thread; it must be what was sent."""
    waiting, size, looked, digest = bytearray(), 0, 0, hashlib.sha256()

    def put() -> None:
        store.write_out(waiting, file)
        if sha256:
            digest.update(waiting)

    async for chunk in request.stream():
        waiting += chunk
        size += len(chunk)
        if len(waiting) >= PIECE:
            await to_thread.run_sync(put)
            waiting.clear()
        if size - looked >= ROOM_EVERY:
            await to_thread.run_sync(store.spool_of, site.files)  # raises where too little of the disk is left
            looked = size
    await to_thread.run_sync(put)
    site.meters.upload_bytes.inc(size)
    if sha256 and digest.hexdigest() != sha256:
        raise InputError(f"{size} bytes came, with the SHA-256 {digest.hexdigest()}, not {sha256}; send them again")


def read(site: Site, file: IO[bytes], wish: Wish) -> pipeline.Verdict:
    """Store a file as it is wished, or only say what would be stored."""
    file.flush()
    file.seek(0)
    source = cast("BinaryIO", file)
    if wish.check:
        return pipeline.check(source, wish.file_name, wish.how, files=site.files)
    return pipeline.ingest(site.engine, source, wish.file_name, wish.run, wish.how, files=site.files)


def register(app: FastAPI) -> None:
    """Add the route."""
    body = {
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        "text/csv": {"schema": {"type": "string"}},
        FORM: {"schema": {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}},
    }
    gives = {"application/json": {"schema": SUCCESS, "example": EXAMPLE}}
    add(
        app, "/v1/uploads", upload, "upload", name="upload_file", methods=["POST"], takes=TAKES, gives=gives, body=body,
        tag="uploads", statuses=(200, 201),
    )  # fmt: skip
