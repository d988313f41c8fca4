"""``/reports``: nightly reports, and each of them as a page with its pictures and its other forms."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline.night import report_of_night
from profsvc.reports import nightly_figures
from profsvc.reports.nightly_parts import Part, foot, head, judged, named, parts
from profsvc.views import nightly
from profsvc.web.asked import Asked
from profsvc.web.pages.figures import Figure, figure
from profsvc.web.pages.frame import Links, fields, moved, page, path_to
from profsvc.web.pages.tables import Column, Row
from profsvc.web.routes import add_page
from profsvc.web.site import grant_of, site_of

LIMIT, MOST = 100, 2000
ASKED = ("project", "date", "zone")
TAGS = {"worse": "bad", "better": "good"}
# Title of a column of the parts of a report -> what explains its numbers.
EXPLAINED = {
    "before": "v1_findings.value_before", "after": "v1_findings.value_after", "change": "v1_findings.change",
    "as measured": "v1_findings.raw_after", "corrected": "v1_findings.value_after", "expected": "report.expected",
    "tonight": "report.tonight", "p": "report.p", "foretold": "report.foretold", "achieved": "report.achieved",
}  # fmt: skip


def _report(row: Row) -> str:
    return f"/reports/{row['report_id']}"


COLUMNS = [
    Column("night", "Night", link=_report),
    Column("scope", "Project", "name", width=24),
    Column("one_line", "In one line", "name", width=110, link=_report),
    Column("findings_new", "New", "number", "v1_reports.findings_new"),
    Column("findings_open", "Open", "number", "v1_reports.findings_open"),
    Column("reruns_wanted", "Runs wanted", "number", "v1_reports.reruns_wanted"),
    Column("uploads_failed", "Files refused", "number", "v1_reports.uploads_failed"),
    Column("runs", "Runs", "number", "v1_reports.runs"),
    Column("series", "Series", "number", "v1_reports.series"),
    Column("made_at", "Made (UTC)", "when"),
]

OUTCOMES = {True: "delivered", False: "not delivered"}
SENT = [
    Column("channel", "Channel", "name", width=40),
    Column("kind", "Kind"),
    Column("outcome", "Outcome"),
    Column("message", "Why not", "name", width=80),
    Column("sent_by", "Sent by", "name", width=30),
    Column("sent_at", "When (UTC)", "when"),
]


def show(request: Request) -> Response:
    """List the reports, the newest night first."""
    asked = Asked(request)
    limit = asked.count("limit", LIMIT, MOST)
    asked.done()
    found = nightly.reports(site_of(request).engine, grant_of(request).project, limit)
    rows = [dict(row) | {"scope": row["project"] or "all"} for row in found["reports"]]
    links = Links(json=path_to(request, "/v1/reports"), csv=path_to(request, "/v1/reports.csv"),
                  sql="select night, project, one_line, findings_new, findings_open from v1_reports\n"
                      "order by night desc")  # fmt: skip
    return page(request, "reports.html", "Nightly reports", links=links, rows=rows, columns=COLUMNS,
                truncated=found["truncated"], most=MOST, zone=rows[0]["zone"] if rows else "UTC",
                may_make=grant_of(request).allows("admin"))  # fmt: skip


async def make(request: Request) -> Response:
    """Make the report of a night now, as a form says, and show it."""
    said = await fields(request)
    if unknown := sorted(set(said) - set(ASKED)):
        raise UsageError(str(NotFoundError.near("field of the form", unknown[0], ASKED)))
    project, date, zone = (said.get(name, "").strip() for name in ASKED)
    if "\0" in project + date + zone:
        raise UsageError("a text holds no NUL character")
    engine = site_of(request).engine
    document = await to_thread.run_sync(report_of_night, engine, project or None, date or None, zone or "UTC")
    return moved(request, f"/reports/{document['report_id']}")


def one(request: Request) -> Response:
    """Show a report."""
    Asked(request).done()
    document = nightly.report(site_of(request).engine, request.path_params["report"], grant_of(request).project)
    number = document["report_id"]
    sent = nightly.deliveries(site_of(request).engine, [number], grant_of(request).project)[number]
    sent = [dict(row) | {"outcome": OUTCOMES[bool(row["delivered"])]} for row in sent]
    first, *others = head(document)
    forms = {"HTML": "html", "Markdown": "md", "Text": "txt"}
    return page(
        request, "report.html", f"Night of {document['night']}", first=first, others=others, foot=foot(document),
        links=Links(json=path_to(request, f"/v1/reports/{number}"), sql=_sql(number)), document=document,
        forms={title: path_to(request, f"/v1/reports/{number}.{form}") for title, form in forms.items()},
        tone=_tone(document), parts=parts(document), pictures=_pictures(document), tags=TAGS,
        numbered=_numbered(parts(document)), explain=EXPLAINED,
        deliveries=sent, sent=SENT,
    )  # fmt: skip


def _sql(number: int) -> str:
    return f"select * from v1_findings where report_id = {number}"


def _tone(document: Mapping[str, Any]) -> str:
    if not document["changed"]:
        return "fine"
    return "" if any(judged(row) == "worse" for row in document["findings"]) else "mild"


def _pictures(document: Mapping[str, Any]) -> dict[str, Figure]:
    """The history of the worst findings, by the name that the parts of the report have for it."""
    return {
        f"finding-{number}": figure(
            f"finding{number}", named(row), partial(nightly_figures.history, row), row,
            description=f"{named(row)}, run by run; the table above has the levels before and after.",
        )
        for number, row in enumerate(document["findings"])
        if row.get("history")
    }  # fmt: skip


def _numbered(made: Sequence[Part]) -> set[str]:
    """The parts whose rows begin with the number of a finding."""
    return {part.title for part in made if part.heads and part.heads[0] == "#"}


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/reports", show, "read", name="reports_page")
    add_page(app, "/reports", make, "admin", name="report_form", methods=["POST"])
    add_page(app, "/reports/{report}", one, "read", name="report_page")
