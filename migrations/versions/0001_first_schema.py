"""The first schema: runs, uploads, launches, metrics, events, sensors, counters and results."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
STRICT = {"sqlite_strict": True}
CLUSTERED = {"sqlite_strict": True, "sqlite_with_rowid": False}


def upgrade() -> None:
    op.create_table(
        "devices",
        sa.Column("device_id", INT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("compute_capability", TEXT, nullable=False),
        sa.Column("sms", INT, nullable=True),
        sa.Column("facts", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("device_id", name=op.f("pk_devices")),
        sa.UniqueConstraint("name", "compute_capability", name=op.f("uq_devices_name_compute_capability")),
        **STRICT,
    )
    op.create_table(
        "facts",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("value", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_facts")),
        **STRICT,
    )
    op.create_table(
        "kernels",
        sa.Column("kernel_id", INT, nullable=False),
        sa.Column("kernel", TEXT, nullable=False),
        sa.Column("kernel_short", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("kernel_id", name=op.f("pk_kernels")),
        sa.UniqueConstraint("kernel", name=op.f("uq_kernels_kernel")),
        **STRICT,
    )
    op.create_index(op.f("ix_kernels_kernel_short"), "kernels", ["kernel_short"])
    op.create_table(
        "metric_names",
        sa.Column("metric_id", INT, nullable=False),
        sa.Column("metric", TEXT, nullable=False),
        sa.Column("section", TEXT, nullable=False),
        sa.Column("statistic", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("metric_id", name=op.f("pk_metric_names")),
        sa.UniqueConstraint("metric", "section", "statistic", name=op.f("uq_metric_names_metric_section_statistic")),
        **STRICT,
    )
    op.create_table(
        "metrics",
        sa.Column("launch_ref", INT, nullable=False, autoincrement=False),
        sa.Column("item", INT, nullable=False, autoincrement=False),
        sa.Column("kernel_id", INT, nullable=True),
        sa.Column("invocations", INT, nullable=True),
        sa.Column("metric_id", INT, nullable=False),
        sa.Column("unit_id", INT, nullable=False),
        sa.Column("raw_text", TEXT, nullable=False),
        sa.Column("value", REAL, nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("line", INT, nullable=False),
        sa.PrimaryKeyConstraint("launch_ref", "item", name=op.f("pk_metrics")),
        **CLUSTERED,
    )
    op.create_table(
        "model_names",
        sa.Column("model_id", INT, nullable=False),
        sa.Column("model", TEXT, nullable=False),
        sa.Column("quantity", TEXT, nullable=False),
        sa.Column("unit", TEXT, nullable=False),
        sa.Column("form", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_names")),
        sa.UniqueConstraint("model", "quantity", "unit", "form", name=op.f("uq_model_names_model_quantity_unit_form")),
        **STRICT,
    )
    op.create_table(
        "texts",
        sa.Column("text_id", INT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("text_id", name=op.f("pk_texts")),
        sa.UniqueConstraint("text", name=op.f("uq_texts_text")),
        **STRICT,
    )
    op.create_table(
        "unit_names",
        sa.Column("unit_id", INT, nullable=False),
        sa.Column("unit", TEXT, nullable=False),
        sa.Column("si_unit", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("unit_id", name=op.f("pk_unit_names")),
        sa.UniqueConstraint("unit", "si_unit", name=op.f("uq_unit_names_unit_si_unit")),
        **STRICT,
    )
    op.create_table(
        "runs",
        sa.Column("run_id", INT, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("host", TEXT, nullable=True),
        sa.Column("commit_id", TEXT, nullable=True),
        sa.Column("started_at", TEXT, nullable=True),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("device_id", INT, nullable=True),
        sa.Column("version_id", INT, nullable=True),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_runs")),
        sa.UniqueConstraint("project", "name", name=op.f("uq_runs_project_name")),
        sa.CheckConstraint("length(name) > 0", name=op.f("ck_runs_named")),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_runs_device_id")),
        sa.ForeignKeyConstraint(["version_id"], ["texts.text_id"], name=op.f("fk_runs_version_id")),
        **STRICT,
        sqlite_autoincrement=True,
    )
    op.create_table(
        "criteria",
        sa.Column("run_id", INT, nullable=False, autoincrement=False),
        sa.Column("launch_id", INT, nullable=False, autoincrement=False),
        sa.Column("kernel_id", INT, nullable=False, autoincrement=False),
        sa.Column("criterion_id", INT, nullable=False, autoincrement=False),
        sa.Column("version_id", INT, nullable=False, autoincrement=False),
        sa.Column("value", REAL, nullable=True),
        sa.Column("share", REAL, nullable=True),
        sa.Column("speedup", REAL, nullable=True),
        sa.Column("value_as_published", REAL, nullable=True),
        sa.Column("speedup_as_published", REAL, nullable=True),
        sa.Column("flags", INT, nullable=False),
        sa.Column("reason_id", INT, nullable=True),
        sa.PrimaryKeyConstraint(
            "run_id", "launch_id", "kernel_id", "criterion_id", "version_id", name=op.f("pk_criteria")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_criteria_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["criterion_id"], ["texts.text_id"], name=op.f("fk_criteria_criterion_id")),
        sa.ForeignKeyConstraint(["version_id"], ["texts.text_id"], name=op.f("fk_criteria_version_id")),
        sa.ForeignKeyConstraint(["reason_id"], ["texts.text_id"], name=op.f("fk_criteria_reason_id")),
        **CLUSTERED,
    )
    op.create_table(
        "models",
        sa.Column("run_id", INT, nullable=False, autoincrement=False),
        sa.Column("launch_id", INT, nullable=False, autoincrement=False),
        sa.Column("kernel_id", INT, nullable=False, autoincrement=False),
        sa.Column("model_id", INT, nullable=False, autoincrement=False),
        sa.Column("version_id", INT, nullable=False, autoincrement=False),
        sa.Column("value", REAL, nullable=True),
        sa.Column("flags", INT, nullable=False),
        sa.Column("reason_id", INT, nullable=True),
        sa.PrimaryKeyConstraint("run_id", "launch_id", "kernel_id", "model_id", "version_id", name=op.f("pk_models")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_models_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["model_id"], ["model_names.model_id"], name=op.f("fk_models_model_id")),
        sa.ForeignKeyConstraint(["version_id"], ["texts.text_id"], name=op.f("fk_models_version_id")),
        sa.ForeignKeyConstraint(["reason_id"], ["texts.text_id"], name=op.f("fk_models_reason_id")),
        **CLUSTERED,
    )
    op.create_table(
        "potential",
        sa.Column("run_id", INT, nullable=False, autoincrement=False),
        sa.Column("launch_id", INT, nullable=False, autoincrement=False),
        sa.Column("kernel_id", INT, nullable=False, autoincrement=False),
        sa.Column("version_id", INT, nullable=False, autoincrement=False),
        sa.Column("bound_id", INT, nullable=True),
        sa.Column("ideal_bound_id", INT, nullable=True),
        sa.Column("mem_throughput_ratio", REAL, nullable=True),
        sa.Column("arith_throughput_ratio", REAL, nullable=True),
        sa.Column("speedup", REAL, nullable=True),
        sa.Column("speedup_as_published", REAL, nullable=True),
        sa.Column("speedup_ceiling", REAL, nullable=True),
        sa.Column("ideal_ns", REAL, nullable=True),
        sa.Column("duration_ns", REAL, nullable=True),
        sa.Column("flags", INT, nullable=False),
        sa.Column("reason_id", INT, nullable=True),
        sa.PrimaryKeyConstraint("run_id", "launch_id", "kernel_id", "version_id", name=op.f("pk_potential")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_potential_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["version_id"], ["texts.text_id"], name=op.f("fk_potential_version_id")),
        sa.ForeignKeyConstraint(["bound_id"], ["texts.text_id"], name=op.f("fk_potential_bound_id")),
        sa.ForeignKeyConstraint(["ideal_bound_id"], ["texts.text_id"], name=op.f("fk_potential_ideal_bound_id")),
        sa.ForeignKeyConstraint(["reason_id"], ["texts.text_id"], name=op.f("fk_potential_reason_id")),
        **CLUSTERED,
    )
    op.create_table(
        "run_tags",
        sa.Column("run_id", INT, nullable=False, autoincrement=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("value", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key", name=op.f("pk_run_tags")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_run_tags_run_id"), ondelete="CASCADE"),
        **CLUSTERED,
    )
    op.create_table(
        "uploads",
        sa.Column("upload_id", INT, nullable=False),
        sa.Column("run_id", INT, nullable=False),
        sa.Column("file_name", TEXT, nullable=False),
        sa.Column("sha256", TEXT, nullable=False),
        sa.Column("size_bytes", INT, nullable=False),
        sa.Column("format", TEXT, nullable=False),
        sa.Column("tool", TEXT, nullable=True),
        sa.Column("tool_version", TEXT, nullable=True),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("lines", INT, nullable=False),
        sa.Column("lines_stored", INT, nullable=False),
        sa.Column("lines_skipped", INT, nullable=False),
        sa.Column("lines_rejected", INT, nullable=False),
        sa.Column("launches", INT, nullable=False),
        sa.Column("samples", INT, nullable=False),
        sa.Column("gpu_time_ns", REAL, nullable=True),
        sa.Column("same_as", INT, nullable=True),
        sa.Column("message", TEXT, nullable=False),
        sa.Column("facts", TEXT, nullable=False),
        sa.Column("received_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("upload_id", name=op.f("pk_uploads")),
        sa.UniqueConstraint("sha256", name=op.f("uq_uploads_sha256")),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_uploads_sha256")),
        sa.CheckConstraint("status IN ('stored', 'partial')", name=op.f("ck_uploads_status")),
        sa.CheckConstraint("lines = lines_stored + lines_skipped + lines_rejected", name=op.f("ck_uploads_lines")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_uploads_run_id"), ondelete="CASCADE"),
        **STRICT,
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_uploads_run_id"), "uploads", ["run_id"])
    op.create_table(
        "launches",
        sa.Column("launch_id", INT, nullable=False, autoincrement=False),
        sa.Column("upload_id", INT, nullable=False),
        sa.Column("run_id", INT, nullable=False),
        sa.Column("launch_index", INT, nullable=False),
        sa.Column("kernel_id", INT, nullable=False),
        sa.Column("device_id", INT, nullable=True),
        sa.Column("host_id", INT, nullable=True),
        sa.Column("process_name_id", INT, nullable=True),
        sa.Column("source_id", TEXT, nullable=True),
        sa.Column("process_id", INT, nullable=True),
        sa.Column("device_index", INT, nullable=True),
        sa.Column("context", INT, nullable=True),
        sa.Column("stream", INT, nullable=True),
        sa.Column("start_ns", INT, nullable=True),
        sa.Column("duration_ns", REAL, nullable=True),
        sa.Column("grid_x", INT, nullable=True),
        sa.Column("grid_y", INT, nullable=True),
        sa.Column("grid_z", INT, nullable=True),
        sa.Column("block_x", INT, nullable=True),
        sa.Column("block_y", INT, nullable=True),
        sa.Column("block_z", INT, nullable=True),
        sa.Column("line", INT, nullable=False),
        sa.PrimaryKeyConstraint("launch_id", name=op.f("pk_launches")),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.upload_id"], name=op.f("fk_launches_upload_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["kernel_id"], ["kernels.kernel_id"], name=op.f("fk_launches_kernel_id")),
        sa.ForeignKeyConstraint(["device_id"], ["devices.device_id"], name=op.f("fk_launches_device_id")),
        sa.ForeignKeyConstraint(["host_id"], ["texts.text_id"], name=op.f("fk_launches_host_id")),
        sa.ForeignKeyConstraint(["process_name_id"], ["texts.text_id"], name=op.f("fk_launches_process_name_id")),
        **STRICT,
    )
    op.create_table(
        "rejects",
        sa.Column("upload_id", INT, nullable=False, autoincrement=False),
        sa.Column("item", INT, nullable=False, autoincrement=False),
        sa.Column("line", INT, nullable=False),
        sa.Column("lines", INT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("upload_id", "item", name=op.f("pk_rejects")),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.upload_id"], name=op.f("fk_rejects_upload_id"), ondelete="CASCADE"
        ),
        **CLUSTERED,
    )
    op.create_table(
        "characterizations",
        sa.Column("upload_id", INT, nullable=False, autoincrement=False),
        sa.Column("item", INT, nullable=False, autoincrement=False),
        sa.Column("device", TEXT, nullable=False),
        sa.Column("quantity", TEXT, nullable=False),
        sa.Column("x", REAL, nullable=True),
        sa.Column("y", REAL, nullable=False),
        sa.Column("unit", TEXT, nullable=True),
        sa.Column("method", TEXT, nullable=True),
        sa.Column("line", INT, nullable=False),
        sa.PrimaryKeyConstraint("upload_id", "item", name=op.f("pk_characterizations")),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["uploads.upload_id"], name=op.f("fk_characterizations_upload_id"), ondelete="CASCADE"
        ),
        **CLUSTERED,
    )
    op.create_table(
        "counters",
        sa.Column("launch_id", INT, nullable=False, autoincrement=False),
        sa.Column("counter_id", INT, nullable=False, autoincrement=False),
        sa.Column("value", REAL, nullable=True),
        sa.Column("expression_id", INT, nullable=True),
        sa.Column("reason_id", INT, nullable=True),
        sa.PrimaryKeyConstraint("launch_id", "counter_id", name=op.f("pk_counters")),
        sa.ForeignKeyConstraint(
            ["launch_id"], ["launches.launch_id"], name=op.f("fk_counters_launch_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["counter_id"], ["texts.text_id"], name=op.f("fk_counters_counter_id")),
        sa.ForeignKeyConstraint(["expression_id"], ["texts.text_id"], name=op.f("fk_counters_expression_id")),
        sa.ForeignKeyConstraint(["reason_id"], ["texts.text_id"], name=op.f("fk_counters_reason_id")),
        **CLUSTERED,
    )
    op.create_table(
        "rules",
        sa.Column("launch_id", INT, nullable=False, autoincrement=False),
        sa.Column("item", INT, nullable=False, autoincrement=False),
        sa.Column("section_id", INT, nullable=True),
        sa.Column("rule_id", INT, nullable=False),
        sa.Column("rule_type_id", INT, nullable=True),
        sa.Column("kind_id", INT, nullable=True),
        sa.Column("estimated_saving_fraction", REAL, nullable=True),
        sa.Column("estimated_speedup", REAL, nullable=True),
        sa.Column("message", TEXT, nullable=False),
        sa.Column("line", INT, nullable=False),
        sa.PrimaryKeyConstraint("launch_id", "item", name=op.f("pk_rules")),
        sa.ForeignKeyConstraint(
            ["launch_id"], ["launches.launch_id"], name=op.f("fk_rules_launch_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["section_id"], ["texts.text_id"], name=op.f("fk_rules_section_id")),
        sa.ForeignKeyConstraint(["rule_id"], ["texts.text_id"], name=op.f("fk_rules_rule_id")),
        sa.ForeignKeyConstraint(["rule_type_id"], ["texts.text_id"], name=op.f("fk_rules_rule_type_id")),
        sa.ForeignKeyConstraint(["kind_id"], ["texts.text_id"], name=op.f("fk_rules_kind_id")),
        **CLUSTERED,
    )
    op.create_table(
        "transfers",
        sa.Column("transfer_id", INT, nullable=False, autoincrement=False),
        sa.Column("kind_id", INT, nullable=False),
        sa.Column("start_ns", INT, nullable=True),
        sa.Column("duration_ns", REAL, nullable=True),
        sa.Column("bytes", INT, nullable=True),
        sa.Column("source_memory_id", INT, nullable=True),
        sa.Column("target_memory_id", INT, nullable=True),
        sa.Column("device_index", INT, nullable=True),
        sa.Column("device_id", INT, nullable=True),
        sa.Column("process_id", INT, nullable=True),
        sa.Column("context", INT, nullable=True),
        sa.Column("stream", INT, nullable=True),
        sa.Column("line", INT, nullable=False),
        sa.PrimaryKeyConstraint("transfer_id", name=op.f("pk_transfers")),
        **STRICT,
    )
    op.create_table(
        "api_calls",
        sa.Column("call_id", INT, nullable=False, autoincrement=False),
        sa.Column("name_id", INT, nullable=False),
        sa.Column("start_ns", INT, nullable=True),
        sa.Column("duration_ns", REAL, nullable=True),
        sa.Column("process_id", INT, nullable=True),
        sa.Column("thread_id", INT, nullable=True),
        sa.Column("correlation_id", INT, nullable=True),
        sa.Column("line", INT, nullable=False),
        sa.PrimaryKeyConstraint("call_id", name=op.f("pk_api_calls")),
        **STRICT,
    )
    op.create_table(
        "ranges",
        sa.Column("range_id", INT, nullable=False, autoincrement=False),
        sa.Column("name_id", INT, nullable=False),
        sa.Column("start_ns", INT, nullable=True),
        sa.Column("duration_ns", REAL, nullable=True),
        sa.Column("domain_id", INT, nullable=True),
        sa.Column("process_id", INT, nullable=True),
        sa.Column("thread_id", INT, nullable=True),
        sa.Column("line", INT, nullable=False),
        sa.PrimaryKeyConstraint("range_id", name=op.f("pk_ranges")),
        **STRICT,
    )
    op.create_table(
        "kernel_summaries",
        sa.Column("summary_id", INT, nullable=False, autoincrement=False),
        sa.Column("category_id", INT, nullable=False),
        sa.Column("kernel_id", INT, nullable=True),
        sa.Column("name_id", INT, nullable=True),
        sa.Column("calls", INT, nullable=False),
        sa.Column("total_ns", REAL, nullable=True),
        sa.Column("mean_ns", REAL, nullable=True),
        sa.Column("min_ns", REAL, nullable=True),
        sa.Column("max_ns", REAL, nullable=True),
        sa.Column("total_bytes", REAL, nullable=True),
        sa.Column("device_index", INT, nullable=True),
        sa.Column("line", INT, nullable=False),
        sa.PrimaryKeyConstraint("summary_id", name=op.f("pk_kernel_summaries")),
        sa.CheckConstraint("(kernel_id IS NULL) <> (name_id IS NULL)", name=op.f("ck_kernel_summaries_named")),
        **STRICT,
    )
    op.create_table(
        "sensors",
        sa.Column("sensor_id", INT, nullable=False, autoincrement=False),
        sa.Column("quantity", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("unit", TEXT, nullable=False),
        sa.Column("gpu_index", INT, nullable=True),
        sa.Column("device", TEXT, nullable=True),
        sa.Column("x_mm", REAL, nullable=True),
        sa.Column("y_mm", REAL, nullable=True),
        sa.Column("quality", TEXT, nullable=True),
        sa.Column("line", INT, nullable=True),
        sa.Column("samples", INT, nullable=False),
        sa.Column("time_origin_ns", INT, nullable=True),
        sa.Column("local_origin_ns", INT, nullable=True),
        sa.PrimaryKeyConstraint("sensor_id", name=op.f("pk_sensors")),
        **STRICT,
    )
    op.create_table(
        "samples",
        sa.Column("sensor_id", INT, nullable=False, autoincrement=False),
        sa.Column("sample_index", INT, nullable=False, autoincrement=False),
        sa.Column("elapsed_ns", INT, nullable=True),
        sa.Column("time_shift_ns", INT, nullable=True),
        sa.Column("local_shift_ns", INT, nullable=True),
        sa.Column("value", REAL, nullable=True),
        sa.Column("reason_id", INT, nullable=True),
        sa.Column("line", INT, nullable=False),
        sa.PrimaryKeyConstraint("sensor_id", "sample_index", name=op.f("pk_samples")),
        **CLUSTERED,
    )
    if op.get_bind().dialect.name == "postgresql":
        # Names of templates run to tens of thousands of letters, of which a usual index holds 2,700.
        for table, column in (("kernels", "kernel"), ("texts", "text")):
            name = f"uq_{table}_{column}"
            op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} EXCLUDE USING hash ({column} WITH =)")


def downgrade() -> None:
    for table in (
        "samples",
        "sensors",
        "kernel_summaries",
        "ranges",
        "api_calls",
        "transfers",
        "rules",
        "counters",
        "characterizations",
        "rejects",
        "launches",
        "uploads",
        "run_tags",
        "potential",
        "models",
        "criteria",
        "runs",
        "unit_names",
        "texts",
        "model_names",
        "metrics",
        "metric_names",
        "kernels",
        "facts",
        "devices",
    ):
        op.drop_table(table)
