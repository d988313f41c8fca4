"""Short names of kernels as new files get them, where an older rule took a part of the types for the name."""

import hashlib
import json

import sqlalchemy as sa
from alembic import op

from profsvc.kernel_names import short_kernel_name

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

IDENTITY = ("project", "kernel", "subject", "device", "sensor", "quantity")


def digest(identity: list[str | None]) -> str:
    return hashlib.sha256(json.dumps(identity, ensure_ascii=False).encode("utf-8", "backslashreplace")).hexdigest()


def rename_findings(kernel: str, before: str, short: str) -> None:
    """Give findings of a kernel its new name, so that they go on."""
    connection = op.get_bind()
    query = sa.text("SELECT * FROM findings WHERE kernel = :kernel")
    for row in map(dict, connection.execute(query, {"kernel": kernel}).mappings().all()):
        if not row["subject"].startswith(before):
            continue
        row["subject"] = short + row["subject"].removeprefix(before)
        series = digest([row[name] for name in IDENTITY] + ([row["branch"]] if row["branch"] else []))
        connection.execute(
            sa.text("UPDATE findings SET subject = :subject, series = :series WHERE finding_id = :finding_id"),
            {"subject": row["subject"], "series": series, "finding_id": row["finding_id"]},
        )


def upgrade() -> None:
    connection = op.get_bind()
    named = connection.execute(sa.text("SELECT kernel_id, kernel, kernel_short FROM kernels")).all()
    for kernel_id, kernel, before in named:
        if (short := short_kernel_name(kernel)) != before:
            connection.execute(
                sa.text("UPDATE kernels SET kernel_short = :short WHERE kernel_id = :kernel_id"),
                {"short": short, "kernel_id": kernel_id},
            )
            rename_findings(kernel, before, short)


def downgrade() -> None:
    """Keep the names: they are right in each version."""
