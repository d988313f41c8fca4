"""The same bytes may belong to several runs; into one run they come once."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

ALONE, IN_RUN = ("uq_uploads_sha256", "sha256"), ("uq_uploads_run_id_sha256", "run_id, sha256")


def upgrade() -> None:
    change(ALONE, IN_RUN)
    op.create_index(op.f("ix_uploads_sha256"), "uploads", ["sha256"])


def downgrade() -> None:
    op.drop_index(op.f("ix_uploads_sha256"), "uploads")
    change(IN_RUN, ALONE)


def change(old: tuple[str, str], new: tuple[str, str]) -> None:
    if op.get_bind().dialect.name == "sqlite":
        remake(old, new)
        return
    op.drop_constraint(op.f(old[0]), "uploads")
    op.create_unique_constraint(op.f(new[0]), "uploads", new[1].split(", "))


def remake(old: tuple[str, str], new: tuple[str, str]) -> None:
    """Create the table again, because SQLite cannot change a constraint; deleted upload numbers are not reused."""
    bind = op.get_bind()
    about = bind.execute(sa.text("SELECT type, sql FROM sqlite_schema WHERE tbl_name = 'uploads' AND sql IS NOT NULL"))
    table, *indexes = [row.sql for row in sorted(about, key=lambda row: row.type != "table")]
    seen = "CONSTRAINT {} UNIQUE ({})".format(*old)
    if seen not in table:
        raise ValueError(f"the table uploads has no {seen}: {table}")
    made = re.sub(r'^CREATE TABLE "?uploads"?', "CREATE TABLE uploads_new", table)
    last = bind.execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'uploads'")).scalar()
    op.execute(made.replace(seen, "CONSTRAINT {} UNIQUE ({})".format(*new)))
    op.execute("INSERT INTO uploads_new SELECT * FROM uploads")
    op.drop_table("uploads")
    op.rename_table("uploads_new", "uploads")
    for index in indexes:
        op.execute(index)
    if last is not None:
        op.execute("DELETE FROM sqlite_sequence WHERE name = 'uploads'")
        op.execute(f"INSERT INTO sqlite_sequence (name, seq) VALUES ('uploads', {int(last)})")
