"""Totals of causes and criteria over the launches of each kernel of a run, and an index of runs by name."""

import sqlalchemy as sa
from alembic import op

from profsvc.store.maintenance.backfill import Fill, complete

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
# Table -> its third key, what that refers to, and its values.
TABLES = {
    "cause_totals": ("cause_id", "cause_names.cause_id", (("launches", INT, False), ("saving_ns", REAL, True))),
    "criterion_totals": ("criterion_id", "texts.text_id", (("value", REAL, True),)),
}
NEWEST = """
    FROM runs r JOIN {} c ON c.run_id = r.run_id AND c.version_id = r.version_id
    JOIN launches l ON l.launch_id = c.launch_id JOIN shapes h ON h.shape_id = l.shape_id
    WHERE r.run_id IN (SELECT u.run_id FROM uploads u WHERE u.upload_id BETWEEN :low AND :high)
"""
CAUSES = f"""
    INSERT INTO cause_totals (run_id, kernel_id, cause_id, version_id, launches, saving_ns)
    SELECT r.run_id, h.kernel_id, c.cause_id, c.version_id, count(*), sum(c.saving_ns)
    {NEWEST.format("causes")} GROUP BY 1, 2, 3, 4
"""
CRITERIA = f"""
    INSERT INTO criterion_totals (run_id, kernel_id, criterion_id, version_id, value)
    SELECT r.run_id, h.kernel_id, c.criterion_id, c.version_id, sum(c.value * l.duration_ns) / sum(l.duration_ns)
    {NEWEST.format("criteria")} AND c.value IS NOT NULL AND l.duration_ns > 0 GROUP BY 1, 2, 3, 4
"""
CLEAR = "DELETE FROM {} WHERE run_id IN (SELECT u.run_id FROM uploads u WHERE u.upload_id BETWEEN :low AND :high)"


def on_server() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def keys(own: str, target: str) -> dict[str, str]:
    return {"run_id": "runs.run_id", own: target, "version_id": "texts.text_id"}


def references(table: str, refer: dict[str, str]) -> list[sa.ForeignKeyConstraint]:
    """Return the foreign keys of a new table; on a server `upgrade` makes them, as that waits for who writes."""
    if on_server():
        return []
    return [
        sa.ForeignKeyConstraint(
            [column], [target], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE" if column == "run_id" else None
        )
        for column, target in refer.items()
    ]


def expand() -> None:
    for table, (own, target, values) in TABLES.items():
        op.create_table(
            table,
            *(sa.Column(name, INT, nullable=False, autoincrement=False) for name in ("run_id", "kernel_id", own)),
            sa.Column("version_id", INT, nullable=False),
            *(sa.Column(name, kind, nullable=nullable) for name, kind, nullable in values),
            sa.PrimaryKeyConstraint("run_id", "kernel_id", own, name=op.f(f"pk_{table}")),
            *references(table, keys(own, target)),
            sqlite_strict=True,
            sqlite_with_rowid=False,
        )


FILL = Fill(revision, expand, tuple(CLEAR.format(table) for table in TABLES), (CAUSES, CRITERIA))


def upgrade() -> None:
    complete(op.get_bind(), FILL)
    for table, (own, target, _) in TABLES.items():
        # Runs that lost their files while the others were filled.
        op.execute(f"DELETE FROM {table} WHERE run_id NOT IN (SELECT u.run_id FROM uploads u)")
        for column, key in keys(own, target).items() if on_server() else ():
            op.create_foreign_key(
                op.f(f"fk_{table}_{column}"), table, key.split(".")[0], [column], [key.split(".")[1]],
                ondelete="CASCADE" if column == "run_id" else None, postgresql_not_valid=True,
            )  # fmt: skip
    op.create_index(op.f("ix_runs_name"), "runs", ["name"])


def downgrade() -> None:
    op.drop_index(op.f("ix_runs_name"), "runs")
    for table in TABLES:
        op.drop_table(table)
