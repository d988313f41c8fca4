"""``POST`` and ``DELETE /v1/runs/{run}``, ``/v1/uploads/{upload}/restore``, ``/v1/groups``: the runs themselves."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import pipeline, store
from profsvc.errors import NotFoundError, UsageError
from profsvc.web.api.reports import apply_body
from profsvc.web.api.runs import RUN_DESCRIPTION, run_id_of
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import success
from profsvc.web.http.routes import add_route, path_param
from profsvc.web.http.state import AppState, app_state, grant_of, in_worker_thread


def change_run(state: AppState, run_id: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """Rename and tag a run; return its row and what changed."""
    tags = body.get("tags") or {}
    if not isinstance(tags, Mapping) or not all(value is None or isinstance(value, str) for value in tags.values()):
        raise UsageError('tags must be an object of strings, null to remove one: {"branch": "main", "old": null}')
    changed = store.change_run(state.engine, run_id, body.get("name"), tags)
    row = store.parse_json_columns("v1_runs", store.select(state.engine, "v1_runs", run_id=run_id))[0]
    return {"run": row, "changed": changed}


def delete_run(state: AppState, run_id: int) -> dict[str, Any]:
    """Delete a run; return the numbers of its uploads, by which it is restored."""
    row = store.select(state.engine, "v1_runs", run_id=run_id)[0]
    uploads = [upload["upload_id"] for upload in store.select(state.engine, "v1_uploads", run_id=run_id)]
    store.delete_run(state.engine, run_id)
    return {"run_id": run_id, "name": row["name"], "uploads": uploads}


def restore_upload(state: AppState, upload_id: int) -> dict[str, Any]:
    """Restore a deleted upload, with its run."""
    found = pipeline.undelete(state.engine, state.files, upload_id)
    return {"upload_id": upload_id, "run_id": found.run_id, "run": found.run}


async def update_run(request: Request) -> Response:
    """Rename a run, and set or remove its tags."""
    name = request.path_params["run"]

    def act(state: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return change_run(state, run_id_of(request, name), body)

    return await apply_body(request, act, {"name": str, "tags": dict}, 200)


async def remove_run(request: Request) -> Response:
    """Delete a run with its files; its uploads can be restored until the next vacuum."""

    def answer(request: Request) -> Response:
        RequestArgs(request).reject_unknown()
        return success(request, delete_run(app_state(request), run_id_of(request, request.path_params["run"])))

    return await in_worker_thread(answer, request)


async def restore(request: Request) -> Response:
    """Restore a deleted upload, with its number and run."""
    text = request.path_params["upload"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"no deleted upload has the number {text[:40]!r}")

    def act(state: AppState, _: Mapping[str, Any]) -> Mapping[str, Any]:
        return restore_upload(state, int(text))

    return await apply_body(request, act, {}, 200)


async def list_groups(request: Request) -> Response:
    """The newest runs by project and branch (tag branch), with their GPU times."""

    def answer(request: Request) -> Response:
        RequestArgs(request).reject_unknown()
        state = app_state(request)
        found = store.run_groups(state.engine, grant_of(request).project, seconds=state.limits.sql_seconds)
        return success(request, {"groups": found})

    return await in_worker_thread(answer, request)


def register(app: FastAPI) -> None:
    """Add the routes."""
    run = path_param("run", RUN_DESCRIPTION, "h200")
    body = {"type": "object", "properties": {"name": {"type": "string"}, "tags": {"type": "object"}}}
    add_route(app, "/v1/runs/{run:path}", update_run, "admin", name="update_run", methods=["POST"], takes=[run],
              body={"application/json": {"schema": body}}, tag="runs")  # fmt: skip
    add_route(app, "/v1/runs/{run:path}", remove_run, "admin", name="delete_run", methods=["DELETE"], takes=[run],
              tag="runs")  # fmt: skip
    add_route(app, "/v1/uploads/{upload}/restore", restore, "admin", name="restore_upload", methods=["POST"],
              takes=[path_param("upload", "number of a deleted upload", "1")], tag="runs",
              body={"application/json": {"schema": {"type": "object"}}})  # fmt: skip
    add_route(app, "/v1/groups", list_groups, "read", name="run_groups", tag="runs")
