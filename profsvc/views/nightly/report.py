"""Stored nightly reports: the list, and the document of one."""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.errors import NotFoundError

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = Mapping[str, Any]
COLUMNS = (
    "report_id", "project", "night", "zone", "made_at", "runs", "series", "findings_new", "findings_open",
    "reruns_wanted", "uploads_failed", "one_line",
)  # fmt: skip
DELIVERIES = ("report_id", "channel", "kind", "delivered", "message", "sent_by", "sent_at")
MAX_DELIVERIES = 10_000
NEWEST = "newest"
LIMIT = 100


def reports(engine: "Engine", project: str | None = None, limit: int = LIMIT) -> dict[str, Any]:
    """Return the newest reports of all projects or of one, without their documents."""
    page = store.list_view(
        engine, "v1_reports", columns=COLUMNS, order=["-night", "-report_id"], limit=limit, project=project
    )
    return {"reports": page.rows, "truncated": page.truncated}


def reports_with_deliveries(engine: "Engine", project: str | None = None) -> dict[str, Any]:
    """Return the newest reports as in `reports`, each with its ``deliveries``."""
    found = reports(engine, project)
    sent = deliveries(engine, [row["report_id"] for row in found["reports"]], project)
    return found | {"reports": [row | {"deliveries": sent[row["report_id"]]} for row in found["reports"]]}


def report(engine: "Engine", number: int | str, project: str | None = None) -> dict[str, Any]:
    """Return the document of a report by number or ``newest``; with ``project``, only its reports are visible."""
    only = [] if number == NEWEST else [store.Condition("report_id", "", _number(number))]
    page = store.list_view(
        engine, "v1_reports", only, columns=["document"], order=["-night", "-report_id"], limit=1, project=project
    )
    if page.rows:
        document: dict[str, Any] = json.loads(page.rows[0]["document"])
        return document
    what = "there are no reports yet" if number == NEWEST else f"no report has the number {number}"
    raise NotFoundError(f"{what}; create one with: profsvc report nightly")


def deliveries(engine: "Engine", report_ids: Collection[int], project: str | None = None) -> dict[int, list[Row]]:
    """Return the deliveries of these reports, oldest first, by report number."""
    found: dict[int, list[Row]] = {number: [] for number in report_ids}
    if found:
        among = [store.Condition("report_id", bound, str(end)) for bound, end in
                 (("gte", min(found)), ("lte", max(found)))]  # fmt: skip
        page = store.list_view(
            engine, "v1_deliveries", among, columns=DELIVERIES, order=["-delivery_id"], limit=MAX_DELIVERIES,
            project=project,
        )  # fmt: skip
        for row in reversed(page.rows):
            if row["report_id"] in found:
                found[row["report_id"]].append(row)
    return found


def sent(delivery: Row) -> str:
    """Return a delivery as text.

    >>> sent({"channel": "team", "kind": "smtp", "delivered": 1, "message": None, "sent_at": "2026-11-21T06:00:00Z"})
    'team (smtp) delivered 2026-11-21T06:00:00Z'
    """
    done = "delivered" if delivery["delivered"] else "not delivered"
    reason = f": {delivery['message']}" if delivery["message"] else ""
    return f"{delivery['channel']} ({delivery['kind']}) {done} {delivery['sent_at']}{reason}"


def _number(number: int | str) -> str:
    text = str(number)
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"no report named {text[:40]!r}; give its number or {NEWEST}")
    return text
