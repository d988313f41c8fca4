"""Findings of a branch other than the main one are of series of their own, named by it."""

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
IDENTITY = ("project", "kernel", "subject", "device", "sensor", "quantity")
OF_BRANCHES = """
    SELECT f.*, t.value AS tag FROM findings f
    JOIN run_tags t ON t.run_id = f.run_id AND t.key = 'branch' AND t.value NOT IN ('', 'main', 'master', 'trunk')
"""


def digest(identity: list[str | None]) -> str:
    return hashlib.sha256(json.dumps(identity, ensure_ascii=False).encode("utf-8", "backslashreplace")).hexdigest()


def upgrade() -> None:
    op.add_column("findings", sa.Column("branch", TEXT))
    change = sa.text("UPDATE findings SET branch = :tag, series = :series WHERE finding_id = :finding_id")
    connection = op.get_bind()
    for row in connection.execute(sa.text(OF_BRANCHES)).mappings().all():
        series = digest([*(row[name] for name in IDENTITY), row["tag"]])
        connection.execute(change, {"tag": row["tag"], "series": series, "finding_id": row["finding_id"]})


def downgrade() -> None:
    connection = op.get_bind()
    change = sa.text("UPDATE findings SET series = :series WHERE finding_id = :finding_id")
    for row in connection.execute(sa.text("SELECT * FROM findings WHERE branch IS NOT NULL")).mappings().all():
        series = digest([row[name] for name in IDENTITY])
        connection.execute(change, {"series": series, "finding_id": row["finding_id"]})
    op.drop_column("findings", "branch")
