"""The base tables of reports, findings and refused files; a part of `profsvc.store.schema.tables`.

A finding records its place in a series by times as well as by runs, because runs may be deleted while baselines stay.
``series`` is a digest of the subject of the series, which keeps every key within the limits of the databases. The state
of a finding is the newest row of ``finding_states``, or ``new`` without one.
"""

from sqlalchemy import CheckConstraint, UniqueConstraint

from profsvc.store.schema.column_types import integer, key, real, ref, row_id, table, text
from profsvc.store.schema.view_definition import ViewDefinition

reports = table(
    "reports",
    row_id("report_id"),
    text("project", nullable=False),  # empty for all projects, because keys cannot contain null
    text("night", nullable=False),
    text("zone", nullable=False),
    text("made_at", nullable=False),
    integer("newest_upload_id", nullable=False),
    integer("newest_refusal_id", nullable=False),
    integer("runs", nullable=False),
    integer("series", nullable=False),
    integer("findings_new", nullable=False),
    integer("findings_open", nullable=False),
    integer("reruns_wanted", nullable=False),
    integer("uploads_failed", nullable=False),
    text("one_line", nullable=False),
    text("document", nullable=False),
    UniqueConstraint("project", "night"),
    sqlite_autoincrement=True,
)
findings = table(
    "findings",
    row_id("finding_id"),
    ref("report_id", "reports.report_id", nullable=False),
    text("series", nullable=False),
    text("project", nullable=False),
    text("kernel"),
    text("subject", nullable=False),
    text("device"),
    text("sensor"),
    text("quantity", nullable=False),
    text("kind", nullable=False),
    text("unit", nullable=False),
    integer("worse"),
    real("before", nullable=False),
    real("after", nullable=False),
    real("raw_before"),
    real("raw_after"),
    real("p"),
    real("adjusted_p"),
    real("noise"),
    real("reference_temperature_c"),
    integer("points_before", nullable=False),
    integer("points_after", nullable=False),
    integer("run_before_id"),
    integer("run_id", nullable=False),
    text("changed_at", nullable=False),
    text("found_at", nullable=False),
    text("seen_at", nullable=False),
    UniqueConstraint("series", "run_id"),
    sqlite_autoincrement=True,
)
finding_states = table(
    "finding_states",
    ref("finding_id", "findings.finding_id", cascade=True, primary_key=True),
    key("item"),
    text("state", nullable=False),
    ref("report_id", "reports.report_id", index=True),  # the nightly check that set it; null if a person did
    text("said_by"),
    text("because", nullable=False),
    text("said_at", nullable=False),
    CheckConstraint("state IN ('new', 'confirmed', 'accepted', 'fixed')", name="state"),
    clustered=True,
)
refusals = table(
    "refusals",
    row_id("refusal_id"),
    text("project", nullable=False),
    text("run"),
    text("file_name", nullable=False),
    text("sha256", nullable=False),
    text("code", nullable=False),
    text("message", nullable=False),
    text("refused_at", nullable=False),
    sqlite_autoincrement=True,
)
# The recipients of a report and whether it was delivered; addresses are not stored.
deliveries = table(
    "deliveries",
    row_id("delivery_id"),
    ref("report_id", "reports.report_id", cascade=True, nullable=False, index=True),
    text("channel", nullable=False),
    text("kind", nullable=False),
    integer("delivered", nullable=False),
    text("message"),
    text("sent_by", nullable=False),
    text("sent_at", nullable=False),
    CheckConstraint("delivered IN (0, 1)", name="delivered"),
    sqlite_autoincrement=True,
)

NIGHTLY_TABLES = (reports, findings, finding_states, refusals, deliveries)


# The newest state of a finding; a finding without one is new.
_STATE = (
    " LEFT JOIN finding_states s ON s.finding_id = f.finding_id"
    " AND s.item = (SELECT max(o.item) FROM finding_states o WHERE o.finding_id = f.finding_id)"
)


VIEW_DEFINITIONS = {
    "v1_findings": ViewDefinition(
        "Changes found by nightly reports, with their state.",
        "findings f JOIN reports n ON n.report_id = f.report_id"
        " LEFT JOIN runs r ON r.run_id = f.run_id LEFT JOIN runs b ON b.run_id = f.run_before_id" + _STATE,
        (
            ("finding_id", "int", "f.finding_id", "finding number"),
            ("project", "text", "f.project", "project of the series"),
            ("kernel", "text", "f.kernel", "full name of the kernel; null for a power window or a whole run"),
            ("subject", "text", "f.subject", "short name of the kernel, label of the window, or whole run"),
            ("device", "text", "f.device", "device of the series; null if unknown"),
            (
                "sensor",
                "text",
                "f.sensor",
                "sensor of power, temperature or clock; for a duration the tool that measured it",
            ),
            (
                "quantity",
                "text",
                "f.quantity",
                "quantity that changed: duration, a criterion, potential, power, energy, ...",
            ),
            ("kind", "text", "f.kind", "kind of quantity that sets the reporting threshold, such as criterion"),
            ("unit", "text", "f.unit", "unit of the values and of noise; 1 for a fraction"),
            ("state", "text", "coalesce(s.state, 'new')", "new, confirmed, accepted or fixed"),
            ("worse", "int", "f.worse", "1 for a regression, 0 for an improvement; null if only a person can decide"),
            ("value_before", "float", "f.before", "median before the change; for power at the reference temperature"),
            ("value_after", "float", "f.after", "median after the change"),
            (
                "change",
                "float",
                "CASE WHEN f.before <> 0 THEN (f.after - f.before) / abs(f.before) END",
                "relative change: (value_after - value_before) / |value_before|",
            ),
            ("raw_before", "float", "f.raw_before", "uncorrected value_before, if value_before is corrected"),
            ("raw_after", "float", "f.raw_after", "uncorrected value_after, if value_after is corrected"),
            ("p", "float", "f.p", "p-value: probability of such a change in a series without a change"),
            ("adjusted_p", "float", "f.adjusted_p", "p adjusted for the false-discovery rate of the night"),
            ("noise", "float", "f.noise", "run-to-run noise: standard deviation of the values about their level"),
            (
                "reference_temperature_c",
                "float",
                "f.reference_temperature_c",
                "reference temperature of corrected power",
            ),
            (
                "points_before",
                "int",
                "f.points_before",
                "number of runs before the change, since the start of the baseline",
            ),
            ("points_after", "int", "f.points_after", "number of runs after the change, when it was found"),
            ("run_before_id", "int", "f.run_before_id", "last run before the change"),
            ("run_before", "text", "b.name", "name of that run; null if deleted"),
            ("run_id", "int", "f.run_id", "first run after the change"),
            ("run", "text", "r.name", "name of that run; null if deleted"),
            ("changed_at", "text", "f.changed_at", "time of that run, UTC, ISO 8601"),
            ("found_at", "text", "f.found_at", "time of the newest run when it was found, UTC, ISO 8601"),
            ("seen_at", "text", "f.seen_at", "time of the newest run that was checked for it, UTC, ISO 8601"),
            ("night", "text", "n.night", "local date of the report that found it"),
            ("report_id", "int", "f.report_id", "number of that report"),
            ("said_by", "text", "s.said_by", "person who set the state; null if a nightly check did"),
            ("because", "text", "s.because", "reason for the state; null for a new finding"),
            ("said_at", "text", "s.said_at", "time when the state was set, UTC, ISO 8601"),
        ),
    ),
    "v1_reports": ViewDefinition(
        "Nightly reports.",
        "reports n",
        (
            ("report_id", "int", "n.report_id", "report number"),
            ("project", "text", "NULLIF(n.project, '')", "project of the report; null for all projects"),
            ("night", "text", "n.night", "local date of the report"),
            ("zone", "text", "n.zone", "time zone that decides when the day ends"),
            ("made_at", "text", "n.made_at", "creation time, UTC, ISO 8601"),
            ("newest_upload_id", "int", "n.newest_upload_id", "newest upload that the report covers"),
            ("newest_refusal_id", "int", "n.newest_refusal_id", "newest refused file that the report covers"),
            ("runs", "int", "n.runs", "number of runs with files uploaded since the previous report"),
            ("series", "int", "n.series", "number of series of these runs that were checked"),
            ("findings_new", "int", "n.findings_new", "number of changes found"),
            ("findings_open", "int", "n.findings_open", "number of older findings that are still new or confirmed"),
            ("reruns_wanted", "int", "n.reruns_wanted", "number of series with a requested re-run"),
            (
                "uploads_failed",
                "int",
                "n.uploads_failed",
                "number of files that were refused or stored with rejected lines",
            ),
            ("one_line", "text", "n.one_line", "summary in one line"),
            ("document", "text", "n.document", "the whole report, as a JSON object"),
        ),
    ),
    "v1_deliveries": ViewDefinition(
        "Deliveries of reports to channels, with their outcome.",
        "deliveries d JOIN reports n ON n.report_id = d.report_id",
        (
            ("delivery_id", "int", "d.delivery_id", "delivery number"),
            ("report_id", "int", "d.report_id", "number of the report"),
            ("project", "text", "NULLIF(n.project, '')", "project of the report; null for all projects"),
            ("night", "text", "n.night", "local date of the report"),
            ("channel", "text", "d.channel", "name of the channel"),
            ("kind", "text", "d.kind", "kind of the channel: smtp, slack, teams, mattermost or file"),
            ("delivered", "int", "d.delivered", "1 if delivered, else 0"),
            ("message", "text", "d.message", "reason for a failed or partial delivery; null otherwise"),
            ("sent_by", "text", "d.sent_by", "sender: a schedule by its number, or a user"),
            ("sent_at", "text", "d.sent_at", "time of the outcome, UTC, ISO 8601"),
        ),
    ),
    "v1_refusals": ViewDefinition(
        "Refused files, of which nothing is stored.",
        "refusals f",
        (
            ("refusal_id", "int", "f.refusal_id", "refusal number"),
            ("project", "text", "f.project", "project that was given for the file"),
            ("run", "text", "f.run", "run that was given for the file; null if none was"),
            ("file_name", "text", "f.file_name", "name of the file as given"),
            ("sha256", "text", "f.sha256", "SHA-256 of the bytes as uploaded"),
            ("code", "text", "f.code", "error code for programs"),
            ("message", "text", "f.message", "error message, with what to do"),
            ("refused_at", "text", "f.refused_at", "time of the refusal, UTC, ISO 8601"),
        ),
    ),
}
