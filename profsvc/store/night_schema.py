"""The base tables of reports, findings and refused files; a part of `profsvc.store.schema`.

A finding names its place in a series by times, not only by runs: runs may be deleted, baselines stay. ``series`` is the
digest of what the series is of, so that no key is longer than a database takes. The state of a finding is the newest
row of ``finding_states``, and ``new`` without one.
"""

from sqlalchemy import CheckConstraint, UniqueConstraint

from profsvc.store.parts import integer, key, real, ref, row_id, table, text

reports = table(
    "reports",
    row_id("report_id"),
    text("project", nullable=False),  # empty: every project, for keys hold no null
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
    ref("report_id", "reports.report_id", index=True),  # the night that moved it; null where somebody set it
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
# Who was told of a report, and whether it arrived; no address is kept.
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

NIGHT = (reports, findings, finding_states, refusals, deliveries)
