"""The views of nightly reports, of what was found in them, and of files that were refused."""

from profsvc.store.shapes import Shape

# The newest word on a finding; a finding without one is new.
_STATE = (
    " LEFT JOIN finding_states s ON s.finding_id = f.finding_id"
    " AND s.item = (SELECT max(o.item) FROM finding_states o WHERE o.finding_id = f.finding_id)"
)

SHAPES = {
    "v1_findings": Shape(
        "A change of a series of runs that a nightly report found, and what became of it.",
        "findings f JOIN reports n ON n.report_id = f.report_id"
        " LEFT JOIN runs r ON r.run_id = f.run_id LEFT JOIN runs b ON b.run_id = f.run_before_id" + _STATE,
        (
            ("finding_id", "int", "f.finding_id", "the finding's number"),
            ("project", "text", "f.project", "project of the series"),
            ("kernel", "text", "f.kernel", "full name of the kernel; null for a window of power or a whole run"),
            ("subject", "text", "f.subject", "what changed: a kernel by its short name, a window, or whole run"),
            ("device", "text", "f.device", "device of the series; null if not known"),
            (
                "sensor",
                "text",
                "f.sensor",
                "sensor of a power, temperature or clock; of a duration the tool that measured it",
            ),
            ("quantity", "text", "f.quantity", "what of it: duration, a criterion, potential, power, energy, ..."),
            ("kind", "text", "f.kind", "the quantity that says which change is worth a word, such as criterion"),
            ("unit", "text", "f.unit", "unit of the values and of noise; 1 for a share"),
            ("state", "text", "coalesce(s.state, 'new')", "new, confirmed, accepted or fixed"),
            ("worse", "int", "f.worse", "1 for a regression, 0 for an improvement; null where only a person can say"),
            ("value_before", "float", "f.before", "median before the change; of power at the reference temperature"),
            ("value_after", "float", "f.after", "median since the change"),
            (
                "change",
                "float",
                "CASE WHEN f.before <> 0 THEN (f.after - f.before) / abs(f.before) END",
                "value after less value before, as a share of it",
            ),
            ("raw_before", "float", "f.raw_before", "value before as measured, where that is corrected"),
            ("raw_after", "float", "f.raw_after", "value after as measured, where that is corrected"),
            ("p", "float", "f.p", "probability of such a change in a series without one"),
            ("adjusted_p", "float", "f.adjusted_p", "false share of the night's findings at which it is just found"),
            ("noise", "float", "f.noise", "standard deviation of a value about its level"),
            ("reference_temperature_c", "float", "f.reference_temperature_c", "temperature that power is corrected to"),
            ("points_before", "int", "f.points_before", "runs before the change, since the baseline began"),
            ("points_after", "int", "f.points_after", "runs since the change, when it was found"),
            ("run_before_id", "int", "f.run_before_id", "last run before the change"),
            ("run_before", "text", "b.name", "its name; null if it was deleted"),
            ("run_id", "int", "f.run_id", "first run after the change"),
            ("run", "text", "r.name", "its name; null if it was deleted"),
            ("changed_at", "text", "f.changed_at", "when that run was, UTC, ISO 8601"),
            ("found_at", "text", "f.found_at", "when the newest run was that it was found by, UTC, ISO 8601"),
            ("seen_at", "text", "f.seen_at", "when the newest run was that was looked at for it, UTC, ISO 8601"),
            ("night", "text", "n.night", "night of the report that found it, a local date"),
            ("report_id", "int", "f.report_id", "that report"),
            ("said_by", "text", "s.said_by", "who set the state; null where a night did"),
            ("because", "text", "s.because", "why it is in this state; null for a new one"),
            ("said_at", "text", "s.said_at", "since when, UTC, ISO 8601"),
        ),
    ),
    "v1_reports": Shape(
        "A nightly report.",
        "reports n",
        (
            ("report_id", "int", "n.report_id", "the report's number"),
            ("project", "text", "NULLIF(n.project, '')", "project it is on; null for all"),
            ("night", "text", "n.night", "the night, a local date"),
            ("zone", "text", "n.zone", "time zone in which the night ends"),
            ("made_at", "text", "n.made_at", "when it was made, UTC, ISO 8601"),
            ("newest_upload_id", "int", "n.newest_upload_id", "newest upload that it has seen"),
            ("newest_refusal_id", "int", "n.newest_refusal_id", "newest refused file that it has seen"),
            ("runs", "int", "n.runs", "runs with files that came in since the report before"),
            ("series", "int", "n.series", "series of these runs that were looked at"),
            ("findings_new", "int", "n.findings_new", "changes that it found"),
            ("findings_open", "int", "n.findings_open", "older ones that are new or confirmed still"),
            ("reruns_wanted", "int", "n.reruns_wanted", "series that another run is asked for"),
            ("uploads_failed", "int", "n.uploads_failed", "files refused, or stored with lines rejected"),
            ("one_line", "text", "n.one_line", "the report in one line"),
            ("document", "text", "n.document", "the report, as a JSON object"),
        ),
    ),
    "v1_deliveries": Shape(
        "A report that was sent to a channel, and what became of it.",
        "deliveries d JOIN reports n ON n.report_id = d.report_id",
        (
            ("delivery_id", "int", "d.delivery_id", "the delivery's number"),
            ("report_id", "int", "d.report_id", "the report"),
            ("project", "text", "NULLIF(n.project, '')", "project that it is on; null for all"),
            ("night", "text", "n.night", "its night, a local date"),
            ("channel", "text", "d.channel", "name of the channel"),
            ("kind", "text", "d.kind", "what the channel is: smtp, slack, teams, mattermost or file"),
            ("delivered", "int", "d.delivered", "1 if it was delivered, else 0"),
            ("message", "text", "d.message", "why it was not, or not to everybody; null if it was"),
            ("sent_by", "text", "d.sent_by", "who sent it: a schedule by its number, or a user"),
            ("sent_at", "text", "d.sent_at", "when that was known, UTC, ISO 8601"),
        ),
    ),
    "v1_refusals": Shape(
        "A file that was refused: nothing of it is stored.",
        "refusals f",
        (
            ("refusal_id", "int", "f.refusal_id", "the refusal's number"),
            ("project", "text", "f.project", "project it was for"),
            ("run", "text", "f.run", "run it was for, where one was named"),
            ("file_name", "text", "f.file_name", "name of the file as given"),
            ("sha256", "text", "f.sha256", "SHA-256 of its bytes as given"),
            ("code", "text", "f.code", "kind of the error, for programs"),
            ("message", "text", "f.message", "what was wrong with it, and what to do"),
            ("refused_at", "text", "f.refused_at", "when, UTC, ISO 8601"),
        ),
    ),
}
