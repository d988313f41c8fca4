"""Forms that rename, tag, delete and restore a run, for the scope admin."""

from collections.abc import Mapping

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import UsageError
from profsvc.web.api.run_changes import change_run, delete_run, restore_upload
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.page import find_run_id, form_fields, redirect


async def change_from_form(request: Request) -> Response:
    """Rename and tag, or delete, the run of the path."""
    return await to_thread.run_sync(_change, request, await form_fields(request))


def _change(request: Request, fields: Mapping[str, str]) -> Response:
    state, run_id = app_state(request), find_run_id(request, request.path_params["run"])
    if fields.get("act") == "delete":
        found = delete_run(state, run_id)
        uploads = ",".join(str(number) for number in found["uploads"])
        return redirect(request, "/", {"deleted": found["name"], "uploads": uploads})
    if fields.get("act") != "change":
        raise UsageError("act must be change or delete")
    given: dict[str, str | None] = {}
    for line in filter(str.strip, fields.get("tags", "").splitlines()):
        key, sign, value = line.strip().partition("=")
        if not sign:
            raise UsageError(f"tag {line[:60]!r} must look like KEY=VALUE")
        given[key] = value
    row = store.parse_json_columns("v1_runs", store.select(state.engine, "v1_runs", run_id=run_id))[0]
    gone: dict[str, str | None] = dict.fromkeys(set(row["tags"] or {}) - given.keys())
    change_run(state, run_id, {"name": fields.get("name", "").strip(), "tags": gone | given})
    return redirect(request, f"/runs/{run_id}")


async def restore_from_form(request: Request) -> Response:
    """Restore the uploads of a deleted run."""
    fields = await form_fields(request)
    return await to_thread.run_sync(_restore, request, fields.get("uploads", ""))


def _restore(request: Request, uploads: str) -> Response:
    numbers = [text for text in uploads.split(",") if text.isascii() and text.isdigit() and len(text) < 19]
    if not numbers:
        raise UsageError("no upload to restore; list them with: profsvc undelete")
    for number in numbers:
        found = restore_upload(app_state(request), int(number))
    return redirect(request, f"/runs/{found['run_id']}")


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/restore", restore_from_form, "admin", name="restore_form", methods=["POST"])
    add_page(app, "/runs/{run}", change_from_form, "admin", name="change_run_form", methods=["POST"])
