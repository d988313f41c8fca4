"""On a server nothing refers to launches: to look up what goes with each took nine tenths of deleting them."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

REFERRING = ("rules", "counters")


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for name in REFERRING:
            op.drop_constraint(op.f(f"fk_{name}_launch_id"), name)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for name in REFERRING:
            key = op.f(f"fk_{name}_launch_id")
            op.create_foreign_key(key, name, "launches", ["launch_id"], ["launch_id"], ondelete="CASCADE")
