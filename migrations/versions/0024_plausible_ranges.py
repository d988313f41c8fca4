"""A sensor says what its readings can be, and how many of them are not."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
# Of sensors that are in the store already; those of new files are known by name as well.
RANGES = (
    ("power", "W", 0.0, 4000.0, True),
    ("power", "W", -1e6, 1e7, False),
    ("temperature", "degC", -60.0, 150.0, True),
    ("temperature", "degC", -270.0, 1372.0, False),
    ("clock", "Hz", 0.0, 2e10, False),
)
UPDATE = sa.text(
    "UPDATE sensors SET plausible_low = :low, plausible_high = :high WHERE quantity = :quantity AND unit = :unit"
    " AND plausible_low IS NULL AND (:any = 1 OR gpu_index IS NOT NULL OR device IS NOT NULL)"
)
COUNT = sa.text(
    "UPDATE sensors SET implausible = (SELECT count(*) FROM sample_blocks b CROSS JOIN samples s"
    " WHERE b.sensor_id = sensors.sensor_id AND s.sample_id BETWEEN b.first_id AND b.last_id"
    " AND (s.value < sensors.plausible_low OR s.value > sensors.plausible_high)) WHERE plausible_low IS NOT NULL"
)


def upgrade() -> None:
    op.add_column("sensors", sa.Column("plausible_low", REAL, nullable=True))
    op.add_column("sensors", sa.Column("plausible_high", REAL, nullable=True))
    op.add_column("sensors", sa.Column("implausible", INT, nullable=True))
    bind = op.get_bind()
    for quantity, unit, low, high, of_gpu in RANGES:
        given = {"quantity": quantity, "unit": unit, "low": low, "high": high, "any": int(not of_gpu)}
        bind.execute(UPDATE, given)
    bind.execute(COUNT)


def downgrade() -> None:
    for name in ("implausible", "plausible_high", "plausible_low"):
        op.drop_column("sensors", name)
