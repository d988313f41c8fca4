"""``/settings``: tokens, schedules, channels and storage; only for the scope admin."""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import scheduler, store
from profsvc.errors import NotFoundError, UsageError
from profsvc.web import administration
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.page import Links, form_fields, page, path_to, redirect
from profsvc.web.pages.rendering.tables import Column

PARTS = {"tokens": "Tokens", "schedules": "Schedules", "channels": "Channels", "storage": "Storage"}
CHECK_COLUMNS = (
    Column("check", "check"), Column("state", "state", "flags"), Column("found", "found"),
    Column("fix", "what to do"),
)  # fmt: skip


def show_settings(request: Request) -> Response:
    """Show a part of the settings."""
    RequestArgs(request).reject_unknown()
    part = request.path_params.get("part", "tokens")
    if part not in PARTS:
        raise NotFoundError.near("part of the settings", part, PARTS)
    return _page(request, part)


def _page(request: Request, part: str, **more: Any) -> Response:
    state = app_state(request)
    path = {"schedules": "/v1/schedules/list"}.get(part, f"/v1/{part}")
    known: dict[str, Any] = {"tokens": [], "schedules": [], "channels": [], "storage": None, "made": None, "done": ""}
    reads: Mapping[str, Any] = {
        "tokens": lambda: administration.tokens(state.engine),
        "schedules": lambda: administration.schedules(state.engine),
        "channels": administration.channel_rows,
        "storage": lambda: administration.storage(state, brief=True),
    }
    known[part] = reads[part]()
    if part == "schedules":
        known["channels"] = administration.channel_rows()
    return page(
        request, "settings.html", PARTS[part], links=Links(path_to(request, path)), part=part, parts=PARTS,
        scopes=store.SCOPES, default_scopes=administration.DEFAULT_SCOPES, kinds=scheduler.KINDS,
        check_columns=CHECK_COLUMNS, needs_token=state.is_public or store.requires_token(state.engine),
        **known | more,
    )  # fmt: skip


async def change_settings(request: Request) -> Response:
    """Do what a form of the settings asks for."""
    fields = await form_fields(request)
    # Of a list of boxes each has a field of its own.
    return await to_thread.run_sync(_change, request, fields)


def _change(request: Request, fields: Mapping[str, str]) -> Response:
    state, part, act = app_state(request), request.path_params["part"], fields.get("act", "")
    if (part, act) == ("tokens", "create"):
        days = fields.get("days", "").strip()
        if days and not days.replace(".", "", 1).isdigit():
            raise UsageError(f"days={days[:40]!r} must be a number")
        body = {
            "name": fields.get("name", ""),
            "scopes": [scope for scope in store.SCOPES if fields.get(f"scope-{scope}")],
            "project": fields.get("project", "").strip(),
            "days": float(days) if days else None,
        }
        return _page(request, part, made=administration.create_token(state.engine, body))
    if (part, act) == ("tokens", "revoke"):
        store.revoke_token(state.engine, fields.get("token", ""))
    elif (part, act) == ("schedules", "add"):
        body = {name: fields.get(name, "").strip() for name in ("kind", "cron", "zone", "project")}
        said = (line.partition("=") for line in fields.get("arguments", "").splitlines() if line.strip())
        arguments: dict[str, list[str]] = {}
        for key, _, value in said:
            arguments.setdefault(key.strip(), []).append(value.strip())
        administration.add_schedule(state.engine, {**body, "arguments": arguments})
    elif part == "schedules" and act in administration.SCHEDULE_ACTS:
        number = fields.get("schedule", "")
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            raise NotFoundError(f"no schedule has the number {number[:40]!r}")
        found = administration.change_schedule(state, int(number), act)
        if "slot" in found:
            return _page(request, part, done=f"Schedule {number}: {found['slot']['state']}: {found['slot']['message']}")
    elif (part, act) == ("channels", "test"):
        found = administration.send_test(fields.get("channel", ""))
        return _page(request, part, done=f"{found['channel']}: test message delivered")
    else:
        raise UsageError(f"act={act[:40]!r} is not known on this page")
    return redirect(request, f"/settings/{part}")


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/settings", show_settings, "admin", name="settings_page")
    add_page(app, "/settings/{part}", show_settings, "admin", name="settings_part")
    add_page(app, "/settings/{part}", change_settings, "admin", name="change_settings", methods=["POST"])
