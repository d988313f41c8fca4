"""The base tables of reports, findings and refused files; a part of `profsvc.store.schema.tables`.

A finding records its place in a series by times as well as by runs, because runs may be deleted while baselines stay.
``series`` is a digest of the subject of the series, which keeps every key within the limits of the databases. The state
of a finding is the newest row of ``finding_states``, or ``new`` without one.
"""

from profsvc.store.schema.column_types import check, fields, key, ref, row_id, table, text, unique
from profsvc.store.schema.view_definition import ViewDefinition, view_columns

reports = table(
    "reports",
    row_id("report_id"),
    text("project", nullable=False),  # empty for all projects, because keys cannot contain null
    *fields(
        "night text, zone text, made_at text, newest_upload_id int, newest_refusal_id int, runs int, series int",
        "findings_new int, findings_open int, reruns_wanted int, uploads_failed int, one_line text, document text",
    ),
    unique("project", "night"),
    sqlite_autoincrement=True,
)
findings = table(
    "findings",
    row_id("finding_id"),
    ref("report_id", "reports.report_id", nullable=False),
    *fields(
        "series text, project text, kernel text?, subject text, device text?, sensor text?, quantity text, kind text",
        "unit text, worse int?, before float, after float, raw_before float?, raw_after float?, p float?",
        "adjusted_p float?, noise float?, reference_temperature_c float?, points_before int, points_after int",
        "run_before_id int?, run_id int, changed_at text, found_at text, seen_at text, branch text?",
    ),
    unique("series", "run_id"),
    sqlite_autoincrement=True,
)
finding_states = table(
    "finding_states",
    ref("finding_id", "findings.finding_id", cascade=True, primary_key=True),
    key("item"),
    text("state", nullable=False),
    ref("report_id", "reports.report_id", index=True),  # the nightly check that set it; null if a person did
    *fields("said_by text?, because text, said_at text"),
    check("state IN ('new', 'confirmed', 'accepted', 'fixed')", "state"),
    clustered=True,
)
# What else differs between the runs before a change and those since.
finding_differences = table(
    "finding_differences",
    ref("finding_id", "findings.finding_id", cascade=True, primary_key=True),
    key("item"),
    *fields(
        "fact text, part text, title text, unit text, kernel text?, before float?, after float?, before_text text?",
        "after_text text?, change float?",
    ),
    clustered=True,
)
# Kernels that go on under another name, as a report found.
kernel_renames = table(
    "kernel_renames",
    row_id("rename_id"),
    ref("report_id", "reports.report_id", cascade=True, nullable=False, index=True),
    *fields(
        "project text, device text?, branch text?, kernel_before text, kernel text, run_id int, renamed_at text",
        "because text",
    ),
    sqlite_autoincrement=True,
)
# What people said of two names, the newest last: that they are one kernel, that they are two, or that reports decide.
rename_decisions = table(
    "rename_decisions",
    row_id("decision_id"),
    *fields("project text, kernel_before text, kernel text, decision text, said_by text, because text, said_at text"),
    check("decision IN ('linked', 'refused', 'automatic')", "decision"),
    sqlite_autoincrement=True,
)
refusals = table(
    "refusals",
    row_id("refusal_id"),
    *fields("project text, run text?, file_name text, sha256 text, code text, message text, refused_at text"),
    sqlite_autoincrement=True,
)
# The recipients of a report and whether it was delivered; addresses are not stored.
deliveries = table(
    "deliveries",
    row_id("delivery_id"),
    ref("report_id", "reports.report_id", cascade=True, nullable=False, index=True),
    *fields("channel text, kind text, delivered int, message text?, sent_by text, sent_at text"),
    check("delivered IN (0, 1)", "delivered"),
    sqlite_autoincrement=True,
)

NIGHTLY_TABLES = (
    reports, findings, finding_states, finding_differences, kernel_renames, rename_decisions, refusals, deliveries,
)  # fmt: skip


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
        view_columns(
            "f",
            "finding_id | int | finding number",
            "project | text | project of the series",
            "kernel | text | full name of the kernel; null for a power window or a whole run",
            "subject | text | short name of the kernel, label of the window, or whole run",
            "device | text | device of the series, several joined by +; null if unknown",
            "branch | text | branch of the runs (tag branch); null for main, master, trunk, and runs without the tag",
            "sensor | text | sensor of power, temperature or clock; for a duration the tool that measured it",
            "quantity | text | quantity that changed: duration, a criterion, potential, power, energy, ...",
            "kind | text | kind of quantity that sets the reporting threshold, such as criterion",
            "unit | text | unit of the values and of noise; 1 for a fraction",
            "state | text | coalesce(s.state, 'new') | new, confirmed, accepted or fixed",
            "worse | int | 1 for a regression, 0 for an improvement; null if only a person can decide",
            "value_before | float | f.before | median before the change; for power at the reference temperature",
            "value_after | float | f.after | median after the change",
            (
                "change | float | CASE WHEN f.before <> 0 THEN (f.after - f.before) / abs(f.before) END | relative "
                "change: (value_after - value_before) / |value_before|"
            ),
            "raw_before | float | uncorrected value_before, if value_before is corrected",
            "raw_after | float | uncorrected value_after, if value_after is corrected",
            "p | float | p-value: probability of such a change in a series without a change",
            "adjusted_p | float | p adjusted for the false-discovery rate of the night",
            "noise | float | run-to-run noise: standard deviation of the values about their level",
            "reference_temperature_c | float | reference temperature of corrected power",
            "points_before | int | number of runs before the change, since the start of the baseline",
            "points_after | int | number of runs after the change, when it was found",
            "run_before_id | int | last run before the change",
            "run_before | text | b.name | name of that run; null if deleted",
            "run_id | int | first run after the change",
            "run | text | r.name | name of that run; null if deleted",
            "changed_at | text | time of that run, UTC, ISO 8601",
            "found_at | text | time of the newest run when it was found, UTC, ISO 8601",
            "seen_at | text | time of the newest run that was checked for it, UTC, ISO 8601",
            "night | text | n.night | local date of the report that found it",
            "report_id | int | number of that report",
            "said_by | text | s.said_by | person who set the state; null if a nightly check did",
            "because | text | s.because | reason for the state; null for a new finding",
            "said_at | text | s.said_at | time when the state was set, UTC, ISO 8601",
        ),
    ),
    "v1_finding_differences": ViewDefinition(
        "What else differs between the runs before a finding and those since.",
        "finding_differences x JOIN findings f ON f.finding_id = x.finding_id",
        view_columns(
            "x",
            "finding_id | int | finding number",
            "item | int | position among the differences of the finding, from 1",
            "project | text | f.project | project of the finding",
            "fact | text | name of the fact, such as registers_per_thread or appeared",
            "part | text | what it is about: event, context, build, inputs, launch, resources, occupancy, power, work, "
            "traffic, causes or kernels",
            "title | text | title of the fact",
            "kernel | text | full name of the kernel; null for a fact of whole runs",
            "unit | text | unit of value_before and value_after",
            "value_before | float | x.before | median of up to five runs before; null for a text",
            "value_after | float | x.after | median of up to five runs since; null for a text",
            "text_before | text | x.before_text | text before; null for a number",
            "text_after | text | x.after_text | text since; null for a number",
            "change | float | relative change; for a cause its part of the change of the time",
        ),
    ),
    "v1_kernel_renames": ViewDefinition(
        "Kernels that go on under another name, as nightly reports found; both names are one series.",
        "kernel_renames k JOIN reports n ON n.report_id = k.report_id",
        view_columns(
            "k",
            "rename_id | int | number of the rename",
            "report_id | int | number of the report that found it",
            "night | text | n.night | local date of that report",
            "project | text | project of the kernel",
            "device | text | device of the runs; null if unknown",
            "branch | text | branch of the runs (tag branch); null for main, master, trunk, and runs without the tag",
            "kernel_before | text | full name of the kernel before",
            "kernel | text | full name since",
            "run_id | int | first run with that name",
            "renamed_at | text | time of that run, UTC, ISO 8601",
            "because | text | what the two have in common",
        ),
    ),
    "v1_rename_decisions": ViewDefinition(
        "What people said of two kernel names: one kernel or two; the newest row of two names is valid.",
        "rename_decisions d",
        view_columns(
            "d",
            "decision_id | int | number of the decision; a higher one is newer",
            "project | text | project of the kernels",
            "kernel_before | text | full name of the kernel before",
            "kernel | text | full name since",
            "decision | text | linked (one kernel), refused (two kernels), or automatic (nightly reports decide)",
            "said_by | text | person who decided",
            "because | text | reason",
            "said_at | text | time of the decision, UTC, ISO 8601",
        ),
    ),
    "v1_reports": ViewDefinition(
        "Nightly reports.",
        "reports n",
        view_columns(
            "n",
            "report_id | int | report number",
            "project | text | NULLIF(n.project, '') | project of the report; null for all projects",
            "night | text | local date of the report",
            "zone | text | time zone that decides when the day ends",
            "made_at | text | creation time, UTC, ISO 8601",
            "newest_upload_id | int | newest upload that the report covers",
            "newest_refusal_id | int | newest refused file that the report covers",
            "runs | int | number of runs with files uploaded since the previous report",
            "series | int | number of series of these runs that were checked",
            "findings_new | int | number of changes found",
            "findings_open | int | number of older findings that are still new or confirmed",
            "reruns_wanted | int | number of series with a requested re-run",
            "uploads_failed | int | number of files that were refused or stored with rejected lines",
            "one_line | text | summary in one line",
            "document | text | the whole report, as a JSON object",
        ),
    ),
    "v1_deliveries": ViewDefinition(
        "Deliveries of reports to channels, with their outcome.",
        "deliveries d JOIN reports n ON n.report_id = d.report_id",
        view_columns(
            "d",
            "delivery_id | int | delivery number",
            "report_id | int | number of the report",
            "project | text | NULLIF(n.project, '') | project of the report; null for all projects",
            "night | text | n.night | local date of the report",
            "channel | text | name of the channel",
            "kind | text | kind of the channel: smtp, slack, teams, mattermost, webhook or file",
            "delivered | int | 1 if delivered, else 0",
            "message | text | reason for a failed or partial delivery; null otherwise",
            "sent_by | text | sender: a schedule by its number, or a user",
            "sent_at | text | time of the outcome, UTC, ISO 8601",
        ),
    ),
    "v1_refusals": ViewDefinition(
        "Refused files, of which nothing is stored.",
        "refusals f",
        view_columns(
            "f",
            "refusal_id | int | refusal number",
            "project | text | project that was given for the file",
            "run | text | run that was given for the file; null if none was",
            "file_name | text | name of the file as given",
            "sha256 | text | SHA-256 of the bytes as uploaded",
            "code | text | error code for programs",
            "message | text | error message, with what to do",
            "refused_at | text | time of the refusal, UTC, ISO 8601",
        ),
    ),
}
