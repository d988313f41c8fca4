"""``/v1/tokens``, ``/v1/schedules/{schedule}``, ``/v1/channels`` and ``/v1/storage``: the service itself."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.web import administration
from profsvc.web.api.reports import apply_body
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import success
from profsvc.web.http.routes import add_route, path_param
from profsvc.web.http.state import AppState, app_state, in_worker_thread

TOKEN_BODY = {"name": str, "scopes": list, "project": str, "days": float}
SCHEDULE_BODY = {"kind": str, "cron": str, "zone": str, "project": str, "arguments": dict}
ACT_BODY = {"act": str}


def _reader(name: str, words: str, read: Callable[[AppState], Any]) -> Callable[..., Any]:
    """Return the handler of a GET that returns one thing under its name."""

    def answer(request: Request) -> Response:
        RequestArgs(request).reject_unknown()
        return success(request, {name: read(app_state(request))})

    async def handler(request: Request) -> Response:
        return await in_worker_thread(answer, request)

    handler.__doc__ = words
    return handler


async def create_token(request: Request) -> Response:
    """Create a token; it is shown only in this answer."""

    def act(state: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return administration.create_token(state.engine, body)

    return await apply_body(request, act, TOKEN_BODY, 201)


async def change_token(request: Request) -> Response:
    """Revoke a token, by name or number."""
    name = request.path_params["token"]

    def act(state: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
        _require_act(body, ("revoke",))
        row = store.revoke_token(state.engine, name)
        return {"token_id": row["token_id"], "name": row["name"], "revoked": True}

    return await apply_body(request, act, ACT_BODY, 200)


async def add_schedule(request: Request) -> Response:
    """Add a schedule; profsvc serve or profsvc scheduler runs it."""

    def act(state: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"schedule": administration.add_schedule(state.engine, body)}

    return await apply_body(request, act, SCHEDULE_BODY, 201)


async def change_schedule(request: Request) -> Response:
    """Pause, resume, run or remove a schedule."""
    text = request.path_params["schedule"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"no schedule has the number {text[:40]!r}")

    def act(state: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return administration.change_schedule(state, int(text), _require_act(body, administration.SCHEDULE_ACTS))

    return await apply_body(request, act, ACT_BODY, 200)


async def test_channel(request: Request) -> Response:
    """Send a test message to a channel."""
    name = request.path_params["channel"]

    def act(_: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
        _require_act(body, ("test",))
        return administration.send_test(name)

    return await apply_body(request, act, ACT_BODY, 200)


def _require_act(body: Mapping[str, Any], known: tuple[str, ...]) -> str:
    act = str(body.get("act", ""))
    if act not in known:
        raise UsageError(f"act={act!r} is not valid; choose {' or '.join(known)}")
    return act


def _body(**properties: Any) -> dict[str, Any]:
    return {"application/json": {"schema": {"type": "object", "properties": properties}}}


def register(app: FastAPI) -> None:
    """Add the routes."""
    text = {"type": "string"}

    def acts(*names: str) -> dict[str, Any]:
        return _body(act={"type": "string", "enum": list(names)})

    for path, name, words, read in (
        ("tokens", "tokens", "All tokens, without their secrets.", lambda s: administration.tokens(s.engine)),
        ("schedules/list", "schedules", "All schedules with their next times.",
         lambda s: administration.schedules(s.engine)),
        ("channels", "channels", "The channels of reports, without their secrets.",
         lambda _: administration.channel_rows()),
        ("storage", "storage", "The store, its checks and their findings.", administration.storage),
    ):  # fmt: skip
        add_route(app, f"/v1/{path}", _reader(name, words, read), "admin", name=f"list_{name}_admin", tag="service")
    add_route(app, "/v1/tokens", create_token, "admin", name="create_token", methods=["POST"], tag="service",
              body=_body(name=text, scopes={"type": "array", "items": {"type": "string", "enum": list(store.SCOPES)}},
                         project=text, days={"type": "number"}), statuses=(201,))  # fmt: skip
    add_route(app, "/v1/tokens/{token}", change_token, "admin", name="change_token", methods=["POST"], tag="service",
              takes=[path_param("token", "token by name or number", "ci")], body=acts("revoke"))  # fmt: skip
    add_route(app, "/v1/schedules", add_schedule, "admin", name="add_schedule", methods=["POST"], tag="service",
              body=_body(kind=text, cron=text, zone=text, project=text, arguments={"type": "object"}),
              statuses=(201,))  # fmt: skip
    add_route(app, "/v1/schedules/{schedule}", change_schedule, "admin", name="change_schedule", methods=["POST"],
              takes=[path_param("schedule", "number of the schedule", "1")], tag="service",
              body=acts(*administration.SCHEDULE_ACTS))  # fmt: skip
    add_route(app, "/v1/channels/{channel}", test_channel, "admin", name="test_channel", methods=["POST"],
              takes=[path_param("channel", "channel by name", "team")], tag="service", body=acts("test"))  # fmt: skip
