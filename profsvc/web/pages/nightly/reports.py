"""``/reports``: the list of nightly reports, and one report with its plots and downloads."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline.nightly import report_of_night
from profsvc.reports.nightly import plots as nightly_plots
from profsvc.reports.nightly.content import Part, foot, head, named, tone
from profsvc.reports.nightly.parts import parts
from profsvc.views.nightly import report as report_view
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state, grant_of
from profsvc.web.pages.rendering.figures import Figure, figure
from profsvc.web.pages.rendering.page import Links, form_fields, page, path_to, redirect
from profsvc.web.pages.rendering.tables import Column, Row

DEFAULT_ROWS, MAX_ROWS = 100, 2000
FORM_FIELDS = ("project", "date", "zone")
TAGS = {"worse": "bad", "better": "good"}
# What a report is about -> the colour of its line.
CLASSES = {"worse": "", "changed": "caution", "calm": "success", "not judged": "plain"}
# Column title in a report -> the explanation of its numbers.
COLUMN_EXPLANATIONS = {
    "before": "v1_findings.value_before", "after": "v1_findings.value_after", "change": "v1_findings.change",
    "uncorrected": "v1_findings.raw_after", "corrected": "v1_findings.value_after", "expected": "report.expected",
    "latest": "report.tonight", "p": "report.p", "predicted": "report.predicted", "achieved": "report.achieved",
}  # fmt: skip


def _report_path(row: Row) -> str:
    return f"/reports/{row['report_id']}"


COLUMNS = [
    Column("night", "Date", link=_report_path),
    Column("scope", "Project", "name", width=24),
    Column("one_line", "Summary", "name", width=110, link=_report_path),
    Column("findings_new", "New", "number", "v1_reports.findings_new"),
    Column("findings_open", "Open", "number", "v1_reports.findings_open"),
    Column("reruns_wanted", "Re-runs requested", "number", "v1_reports.reruns_wanted"),
    Column("uploads_failed", "Files rejected", "number", "v1_reports.uploads_failed"),
    Column("runs", "Runs", "number", "v1_reports.runs"),
    Column("series", "Series", "number", "v1_reports.series"),
    Column("made_at", "Created (UTC)", "when"),
]

OUTCOMES = {True: "delivered", False: "not delivered"}
DELIVERY_COLUMNS = [
    Column("channel", "Channel", "name", width=40),
    Column("kind", "Kind"),
    Column("outcome", "Outcome"),
    Column("message", "Reason", "name", width=80),
    Column("sent_by", "Sent by", "name", width=30),
    Column("sent_at", "Sent (UTC)", "when"),
]


def list_reports(request: Request) -> Response:
    """List the reports, newest first."""
    args = RequestArgs(request)
    limit = args.count("limit", DEFAULT_ROWS, MAX_ROWS)
    args.reject_unknown()
    found = report_view.reports(app_state(request).engine, grant_of(request).project, limit)
    rows = [dict(row) | {"scope": row["project"] or "all"} for row in found["reports"]]
    links = Links(json=path_to(request, "/v1/reports"), csv=path_to(request, "/v1/reports.csv"),
                  sql="select night, project, one_line, findings_new, findings_open from v1_reports\n"
                      "order by night desc")  # fmt: skip
    return page(request, "nightly/reports.html", "Nightly reports", links=links, rows=rows, columns=COLUMNS,
                truncated=found["truncated"], max_rows=MAX_ROWS, zone=rows[0]["zone"] if rows else "UTC",
                may_make=grant_of(request).allows("admin"))  # fmt: skip


async def create_report(request: Request) -> Response:
    """Create a report from a form, and show it."""
    fields = await form_fields(request)
    if unknown := sorted(set(fields) - set(FORM_FIELDS)):
        raise UsageError(str(NotFoundError.near("field of the form", unknown[0], FORM_FIELDS)))
    project, date, zone = (fields.get(name, "").strip() for name in FORM_FIELDS)
    if "\0" in project + date + zone:
        raise UsageError("the form contains a NUL character")
    state = app_state(request)
    asked = project or None, date or None, zone or "UTC"
    document = await state.long_limit.run(report_of_night, state.engine, *asked)
    return redirect(request, f"/reports/{document['report_id']}")


def show_report(request: Request) -> Response:
    """Show a report."""
    RequestArgs(request).reject_unknown()
    document = report_view.report(app_state(request).engine, request.path_params["report"], grant_of(request).project)
    number = document["report_id"]
    sent = report_view.deliveries(app_state(request).engine, [number], grant_of(request).project)[number]
    sent = [dict(row) | {"outcome": OUTCOMES[bool(row["delivered"])]} for row in sent]
    summary, *lines = head(document)
    forms = {"HTML": "html", "Markdown": "md", "Text": "txt"}
    return page(
        request,
        "nightly/report.html",
        f"Nightly report of {document['night']}",
        summary=summary,
        head=lines,
        foot=foot(document),
        links=Links(json=path_to(request, f"/v1/reports/{number}"), sql=_findings_sql(number)),
        document=document,
        forms={title: path_to(request, f"/v1/reports/{number}.{form}") for title, form in forms.items()},
        summary_class=CLASSES[tone(document)],
        parts=parts(document),
        pictures=_finding_figures(document),
        tags=TAGS,
        numbered=_parts_with_finding_ids(parts(document)),
        explain=COLUMN_EXPLANATIONS,
        deliveries=sent,
        sent=DELIVERY_COLUMNS,
    )


def _findings_sql(number: int) -> str:
    return f"select * from v1_findings where report_id = {number}"


def _finding_figures(document: Mapping[str, Any]) -> dict[str, Figure]:
    """Return the history plots of the worst findings by their names in the report."""
    return {
        f"finding-{number}": figure(
            f"finding{number}", named(row), partial(nightly_plots.history, row), row,
            description=f"{named(row)} by run; the table above has the levels before and after.",
        )
        for number, row in enumerate(document["findings"])
        if row.get("history")
    }  # fmt: skip


def _parts_with_finding_ids(made: Sequence[Part]) -> set[str]:
    """Return the titles of the parts whose rows start with the number of a finding."""
    return {part.title for part in made if part.heads and part.heads[0] == "#"}


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/reports", list_reports, "read", name="reports_page")
    add_page(app, "/reports", create_report, "admin", name="report_form", methods=["POST"])
    add_page(app, "/reports/{report}", show_report, "read", name="report_page")
