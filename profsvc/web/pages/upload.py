"""``/upload``: upload files by drag and drop or a plain form, and show the result of each."""

from contextlib import ExitStack
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.errors import ProfsvcError, UsageError
from profsvc.web.api import uploads
from profsvc.web.http.multipart import FormFile, read_form
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state, grant_of
from profsvc.web.pages.rendering.page import find_run_id, page

FORM_FIELDS = ("run", "run_id", "project", "device", "commit", "tag", "timezone", "format")


def show_upload(request: Request) -> Response:
    """Show the form."""
    args = RequestArgs(request)
    given = {name: args.text(name) for name in FORM_FIELDS}
    args.reject_unknown()
    return _upload_page(request, given, [])


def _upload_page(request: Request, given: dict[str, str], results: list[dict[str, Any]], status: int = 200) -> Response:
    kinds = [(one["format"], one["what"]) for one in views.readers()]
    project = grant_of(request).project
    chosen = None
    if number := given["run_id"]:  # a name may contain characters that a form field cannot hold
        engine = app_state(request).engine
        chosen = store.select(engine, "v1_runs", run_id=find_run_id(request, number))[0]
    return page(
        request, "upload.html", "Upload", status=status, given=given, results=results, kinds=kinds, project=project,
        chosen=chosen,
        most_bytes=app_state(request).limits.upload_bytes,
    )  # fmt: skip


async def store_files(request: Request) -> Response:
    """Store the files of the form, each completely or not at all."""
    state = app_state(request)
    with ExitStack() as held:
        async with state.receiving_limit.slot():
            form = await read_form(request, partial(store.spool_folder, state.files), held)
            fields = [(name, value) for name, value in form.fields if value]
            chosen = [part for part in form.files if part.file_name]
            if not chosen:
                raise UsageError("no file was chosen; choose at least one file")
            results = [await _store_file(request, fields, part) for part in chosen]
    given = {name: dict(fields).get(name, "") for name in FORM_FIELDS}
    bad = next((result["status"] for result in results if result["error"]), 200)
    return await to_thread.run_sync(_upload_page, request, given, results, bad)


async def _store_file(request: Request, fields: list[tuple[str, str]], part: FormFile) -> dict[str, Any]:
    """Store one file; return its result or its error."""
    state, project = app_state(request), grant_of(request).project
    try:
        args = RequestArgs([*fields, ("file_name", part.file_name)])
        wanted = await to_thread.run_sync(uploads.upload_request, state, args, project)
        with uploads.count_outcome(state) as count:
            verdict = await uploads.store_in_turn(state, part.file, wanted)
            count("known" if verdict.known else "stored")
        said = vars(verdict)
    except ProfsvcError as error:
        return {"file_name": part.file_name, "error": str(error), "code": error.code(), "status": error.status}
    return said | {"error": "", "status": 200}


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/upload", show_upload, "upload", name="upload_page")
    add_page(app, "/upload", store_files, "upload", name="upload_form", methods=["POST"])
