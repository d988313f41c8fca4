"""What the analysis of power and temperature finds; SMs and launches of marks."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
OF_RANGES = ("active_sms", "launches")
# A column ending in ! is never null; one that ends in _id is a text of ``texts``, unless `INTEGERS` has it.
INTEGERS = {
    *("active_sms", "launches", "sensor_id!", "sensor_id", "temperature_sensor_id", "begin_ns!", "end_ns!"),
    *("readings!", "readings", "segments", "used!", "flags", "upload_id"),
}
TABLES = {
    "power_windows": """
        window_id! kind_id! source_id! load_id kernel_id active_sms launches sensor_id! temperature_sensor_id begin_ns!
        end_ns! duration_s! readings! mean_power_w power_sd_w idle_power_w runtime_power_w slope_w_per_s
        slope_se_w_per_s mean_temperature_c lowest_temperature_c highest_temperature_c mean_clock_hz
        reference_temperature_c coefficient_w_per_c coefficient_low coefficient_high corrected_power_w
        corrected_power_low_w corrected_power_high_w corrected_slope_w_per_s corrected_slope_se_w_per_s energy_j
        runtime_energy_j corrected_energy_j corrected_energy_low_j corrected_energy_high_j counter_energy_j
        counter_ratio energy_per_launch_j energy_delay_js energy_delay2_js2 quality_id reason_id
    """,
    "power_coefficients": """
        sensor_id! temperature_sensor_id law_id! form_id! clock_hz coefficient_w_per_c coefficient_low coefficient_high
        coefficient_per_c temperature_low_c temperature_high_c range_c segments readings used! reason_id
    """,
    "power_models": "model_id! quantity_id! value low high unit_id sensor_id window_id form_id flags reason_id",
    "power_quality": "sensor_id upload_id window_id flag_id! value unit_id message_id!",
}


def upgrade() -> None:
    for name in OF_RANGES:
        op.add_column("ranges", sa.Column(name, INT, nullable=True))
    for table, columns in TABLES.items():
        texts = [c for c in (*columns.split(), "version_id!") if c not in INTEGERS and c.rstrip("!").endswith("_id")]
        op.create_table(
            table,
            sa.Column("run_id", INT, nullable=False, autoincrement=False),
            sa.Column("item", INT, nullable=False, autoincrement=False),
            *(
                sa.Column(c.rstrip("!"), INT if c in INTEGERS or c in texts else REAL, nullable=not c.endswith("!"))
                for c in (*columns.split(), "version_id!")
            ),
            sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f(f"fk_{table}_run_id"), ondelete="CASCADE"),
            *(
                sa.ForeignKeyConstraint([c.rstrip("!")], ["texts.text_id"], name=op.f(f"fk_{table}_{c.rstrip('!')}"))
                for c in texts
            ),
            sa.PrimaryKeyConstraint("run_id", "item", name=op.f(f"pk_{table}")),
            sqlite_strict=True,
            sqlite_with_rowid=False,
        )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    for name in OF_RANGES:
        op.drop_column("ranges", name)
