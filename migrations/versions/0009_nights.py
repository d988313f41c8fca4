"""Nightly reports, their findings and states, and refused files."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
KINDS = {"int": INT, "real": REAL, "text": TEXT}
# A column ending in ! is never null.
REPORTS = """
    text project! night! zone! made_at!
    int newest_upload_id! newest_refusal_id! runs! series! findings_new! findings_open! reruns_wanted! uploads_failed!
    text one_line! document!
"""
FINDINGS = """
    int report_id!
    text series! project! kernel subject! device sensor quantity! kind! unit!
    int worse
    real before! after! raw_before raw_after p adjusted_p noise reference_temperature_c
    int points_before! points_after! run_before_id run_id!
    text changed_at! found_at! seen_at!
"""
STATES = "text state!\nint report_id\ntext said_by because! said_at!"
REFUSALS = "text project! run file_name! sha256! code! message! refused_at!"


def _columns(written: str) -> list[sa.Column]:
    return [
        sa.Column(name.rstrip("!"), KINDS[kind], nullable=not name.endswith("!"))
        for kind, *names in map(str.split, written.strip().splitlines())
        for name in names
    ]


def _numbered(table: str, written: str, *more: sa.Constraint) -> None:
    number = f"{table.removesuffix('s')}_id"
    op.create_table(
        table,
        sa.Column(number, INT, nullable=False),
        *_columns(written),
        sa.PrimaryKeyConstraint(number, name=op.f(f"pk_{table}")),
        *more,
        sqlite_strict=True,
        sqlite_autoincrement=True,
    )


def _report(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["report_id"], ["reports.report_id"], name=op.f(f"fk_{table}_report_id"))


def upgrade() -> None:
    _numbered("reports", REPORTS, sa.UniqueConstraint("project", "night", name=op.f("uq_reports_project_night")))
    of_series = sa.UniqueConstraint("series", "run_id", name=op.f("uq_findings_series_run_id"))
    _numbered("findings", FINDINGS, _report("findings"), of_series)
    op.create_table(
        "finding_states",
        sa.Column("finding_id", INT, nullable=False, autoincrement=False),
        sa.Column("item", INT, nullable=False, autoincrement=False),
        *_columns(STATES),
        sa.ForeignKeyConstraint(
            ["finding_id"], ["findings.finding_id"], name=op.f("fk_finding_states_finding_id"), ondelete="CASCADE"
        ),
        _report("finding_states"),
        sa.PrimaryKeyConstraint("finding_id", "item", name=op.f("pk_finding_states")),
        sa.CheckConstraint("state IN ('new', 'confirmed', 'accepted', 'fixed')", name=op.f("ck_finding_states_state")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_finding_states_report_id"), "finding_states", ["report_id"])
    _numbered("refusals", REFUSALS)


def downgrade() -> None:
    for table in ("refusals", "finding_states", "findings", "reports"):
        op.drop_table(table)
