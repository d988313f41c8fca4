"""A coefficient says which load it holds for, what it rests on, and whether other runs of its board may use it."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TEXTS = ("load_id", "basis_id")


def upgrade() -> None:
    kind = "INTEGER" if op.get_bind().dialect.name == "sqlite" else "BIGINT"
    for name in TEXTS:
        # One statement with its reference, which SQLite takes only so.
        key = f"CONSTRAINT fk_power_coefficients_{name} REFERENCES texts (text_id)"
        op.execute(f"ALTER TABLE power_coefficients ADD COLUMN {name} {kind} {key}")
    op.execute(f"ALTER TABLE power_coefficients ADD COLUMN sound {kind}")


def downgrade() -> None:
    for name in ("sound", *reversed(TEXTS)):
        op.drop_column("power_coefficients", name)
