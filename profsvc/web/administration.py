"""What is done to the service itself, for the API and the pages: tokens, schedules, channels and storage."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine

from profsvc import analysis, channels, scheduler, settings, store
from profsvc.errors import ServiceError, UsageError
from profsvc.scheduler.cron import parse_cron
from profsvc.web.http.state import AppState

NEXT_TIMES = 3
DEFAULT_SCOPES = ("upload", "read")
SCHEDULE_ACTS = ("pause", "resume", "run", "remove")


def tokens(engine: Engine) -> list[dict[str, Any]]:
    """Return the tokens, without their secrets; ``active`` ones first, the newest before."""
    rows = [{**row, "active": bool(row["active"])} for row in map(dict, store.list_tokens(engine))]
    return sorted(rows, key=lambda row: (not row["active"], -row["token_id"]))


def create_token(engine: Engine, body: Mapping[str, Any]) -> dict[str, Any]:
    """Create a token and return it; the store keeps only its hash."""
    name, scopes = str(body.get("name", "")), body.get("scopes") or list(DEFAULT_SCOPES)
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise UsageError(f"scopes must be a list of {', '.join(store.SCOPES)}")
    days = body.get("days")
    if days is not None and (isinstance(days, bool) or not isinstance(days, int | float)):
        raise UsageError("days must be a number")
    made = store.create_token(engine, name, scopes, str(body.get("project") or "") or None, days)
    return {"name": name, "token": made}


def schedules(engine: Engine, now: datetime | None = None) -> list[dict[str, Any]]:
    """Return the schedules with their next times [UTC]; a paused one has none."""
    rows = store.parse_json_columns("v1_schedules", store.select(engine, "v1_schedules"))
    return [row | {"next_times": _next_times(row, now or datetime.now(UTC))} for row in rows]


def _next_times(row: Mapping[str, Any], now: datetime) -> list[str]:
    found: list[str] = []
    times = parse_cron(row["cron"], row["zone"])
    while row["enabled"] and len(found) < NEXT_TIMES:
        due = times.after(now)
        if due is None:
            break
        found.append(store.format_time(due))
        now = due
    return found


def add_schedule(engine: Engine, body: Mapping[str, Any]) -> dict[str, Any]:
    """Add a schedule and return it; ``arguments`` are texts by name, or lists of them."""
    if missing := [name for name in ("kind", "cron") if not body.get(name)]:
        raise UsageError(f"the schedule lacks {missing[0]!r}; it needs kind and cron")
    arguments = body.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise UsageError('arguments must be an object, such as {"channel": ["team"]}')
    lists = {key: value if isinstance(value, list) else [value] for key, value in arguments.items()}
    said = [(key, str(one)) for key, values in lists.items() for one in values]
    channels.select_channels(known_channels(), [text for key, text in said if key == "channel"])
    number = scheduler.add(
        engine, body["kind"], body["cron"], body.get("zone") or "UTC", said, body.get("project") or None
    )
    return _schedule(engine, number)


def change_schedule(state: AppState, number: int, act: str) -> dict[str, Any]:
    """Pause, resume, run or remove a schedule; return it, or the finished slot of a run."""
    if act == "run":
        slot = scheduler.run_now(state.engine, state.files, known_channels(), number)
        return {"slot": store.parse_json_columns("v1_slots", [slot])[0]}
    acts = {"pause": scheduler.pause, "resume": scheduler.resume, "remove": store.remove_schedule}
    if act not in acts:
        raise UsageError(f"act={act!r} is not valid; choose {' or '.join(SCHEDULE_ACTS)}")
    acts[act](state.engine, number)
    return {"schedule": None if act == "remove" else _schedule(state.engine, number)}


def _schedule(engine: Engine, number: int) -> dict[str, Any]:
    return next(row for row in schedules(engine) if row["schedule_id"] == number)


def known_channels() -> Mapping[str, channels.Channel]:
    """Return the channels in the file of PROFSVC_CHANNELS."""
    return channels.load(str(settings.load()["channels"]))


def channel_rows() -> list[dict[str, Any]]:
    """Return the channels without their secrets."""
    return [
        {
            "channel": name,
            "kind": channel.kind,
            "to": ", ".join(channel.options.get("to", []))
            or channel.options.get("folder", "the address in its secret"),
        }
        for name, channel in known_channels().items()
    ]


def send_test(name: str) -> dict[str, Any]:
    """Send a test message to a channel; raise `ServiceError` if it is not delivered."""
    (channel,) = channels.select_channels(known_channels(), [name])
    (done,) = channels.deliver(channels.trial_message(channel.name), [channel])
    if not done.delivered:
        raise ServiceError(f"{name}: not delivered: {channels.public_outcome(done)}")
    return {"channel": name, "delivered": True, "outcome": channels.public_outcome(done)}


def storage(state: AppState, *, brief: bool = False) -> dict[str, Any]:
    """Return the size of the store, and the checks of ``profsvc doctor``; ``brief`` leaves a large file unread."""
    checks = store.run_checks(state.main, lambda: state.files, False, analysis.VERSION, brief=brief)
    return {"store": store.address(state.engine), "checks": [check._asdict() for check in checks]}
