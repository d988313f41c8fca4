"""The base tables of events beside the launches; a part of `profsvc.store.schema`."""

from sqlalchemy import CheckConstraint

from profsvc.store.parts import integer, key, real, table

transfers = table(
    "transfers",
    key("transfer_id"),
    integer("kind_id", nullable=False),
    integer("start_ns"),
    real("duration_ns"),
    integer("bytes"),
    integer("source_memory_id"),
    integer("target_memory_id"),
    integer("device_index"),
    integer("device_id"),
    integer("process_id"),
    integer("context"),
    integer("stream"),
    integer("line", nullable=False),
)
api_calls = table(
    "api_calls",
    key("call_id"),
    integer("name_id", nullable=False),
    integer("start_ns"),
    real("duration_ns"),
    integer("process_id"),
    integer("thread_id"),
    integer("correlation_id"),
    integer("line", nullable=False),
)
ranges = table(
    "ranges",
    key("range_id"),
    integer("name_id", nullable=False),
    integer("start_ns"),
    real("duration_ns"),
    integer("domain_id"),
    integer("process_id"),
    integer("thread_id"),
    integer("line", nullable=False),
    integer("active_sms"),
    integer("launches"),
)
kernel_summaries = table(
    "kernel_summaries",
    key("summary_id"),
    integer("category_id", nullable=False),
    integer("kernel_id"),
    integer("name_id"),
    integer("calls", nullable=False),
    real("total_ns"),
    real("mean_ns"),
    real("min_ns"),
    real("max_ns"),
    real("total_bytes"),
    integer("device_index"),
    integer("line", nullable=False),
    CheckConstraint("(kernel_id IS NULL) <> (name_id IS NULL)", name="named"),
)

TABLES = (transfers, api_calls, ranges, kernel_summaries)
