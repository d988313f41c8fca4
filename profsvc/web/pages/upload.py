"""``/upload``: files dropped or chosen, and what their readers say of them; without script by a plain form."""

from contextlib import ExitStack
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import formats, store
from profsvc.errors import ProfsvcError, UsageError
from profsvc.web import uploads
from profsvc.web.asked import Asked
from profsvc.web.form import Part, received
from profsvc.web.pages.frame import page, run_of
from profsvc.web.routes import add_page
from profsvc.web.site import grant_of, site_of

FIELDS = ("run", "run_id", "project", "device", "commit", "tag", "timezone", "format")


def show(request: Request) -> Response:
    """Show the form."""
    asked = Asked(request)
    given = {name: asked.text(name) for name in FIELDS}
    asked.done()
    return _page(request, given, [])


def _page(request: Request, given: dict[str, str], results: list[dict[str, Any]], status: int = 200) -> Response:
    kinds = [(reader.NAME, reader.PAGE.strip().splitlines()[0]) for reader in formats.READERS]
    project = grant_of(request).project
    chosen = None
    if number := given["run_id"]:  # a name may hold what no field of a form does
        engine = site_of(request).engine
        chosen = store.select(engine, "v1_runs", run_id=run_of(request, number))[0]
    return page(
        request, "upload.html", "Upload", status=status, given=given, results=results, kinds=kinds, project=project,
        chosen=chosen,
        most_bytes=site_of(request).limits.upload_bytes,
    )  # fmt: skip


async def take(request: Request) -> Response:
    """Store the files of the form, each whole or not at all."""
    site = site_of(request)
    with ExitStack() as held:
        async with site.receiving.turn():
            form = await received(request, partial(store.spool_of, site.files), held)
            fields = [(name, value) for name, value in form.fields if value]
            chosen = [part for part in form.files if part.file_name]
            if not chosen:
                raise UsageError("no file was chosen; choose one or several, then send the form")
            results = [await _stored(request, fields, part) for part in chosen]
    given = {name: dict(fields).get(name, "") for name in FIELDS}
    bad = next((result["status"] for result in results if result["error"]), 200)
    return await to_thread.run_sync(_page, request, given, results, bad)


async def _stored(request: Request, fields: list[tuple[str, str]], part: Part) -> dict[str, Any]:
    """Store one file; an error is told beside the others' verdicts."""
    site, project = site_of(request), grant_of(request).project
    try:
        asked = Asked([*fields, ("file_name", part.file_name)])
        wish = await to_thread.run_sync(uploads.wish_of, site, asked, project)
        with uploads.counted(site) as count:
            async with site.reading.turn():
                verdict = await to_thread.run_sync(partial(uploads.read, site, part.file, wish))
            count("known" if verdict.known else "stored")
        said = vars(verdict)
    except ProfsvcError as error:
        return {"file_name": part.file_name, "error": str(error), "code": error.code(), "status": error.status}
    return said | {"error": "", "status": 200}


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/upload", show, "upload", name="upload_page")
    add_page(app, "/upload", take, "upload", name="upload_form", methods=["POST"])
