"""The base tables. They are private: people query the views of `profsvc.store.views`.

How the rows are kept small and in reach without indexes on the big tables:

* Names are written once (``kernels``, ``metric_names``, ``unit_names``, ``model_names``, ``texts``) and
  referred to by number.
* ``launch_id = upload_id * STEP + launch_index + 1``, and in the same way the ids of transfers, calls, ranges,
  summaries, sensors and samples. So the rows of an upload lie together in their primary keys, a row's id is known
  without asking the database, the rows of a run are ranges of ids, and no row needs to name its upload.
  ``upload_id * STEP`` itself stands for the whole file in ``metrics.launch_ref``.
* ``launches``, ``metrics``, ``samples`` and the tables of events have no foreign keys: checking them costs two fifths
  of a load. `profsvc.store.load` writes only numbers that it just made, and deletes by range. On Postgres nothing
  refers to ``launches`` either: looking up what goes with each took nine tenths of a deletion. Without that
  partitions gain nothing that loads and look-ups would not pay for: ``python -m tests.benchmarks.partitions``.
* Cells of pages with a column a metric are kept column by column: `profsvc.store.wide` says how.
* A launch names its place and its shape, which many launches share; only what else differs is its own.
* The readings of a sensor that came together follow each other: ``sample_blocks`` says whose they are, and their
  ordinals and lines count up from those of the block, up to a shift that is nearly always 0.
* A sample holds one time, ``elapsed_ns``; its clocks are kept as what they differ by from it and from their origins
  in ``sensors``. Shifts are nearly always 0 or null, and neither takes space.
* ``kernel_totals`` answers what people ask of traces, by kernel and file, without reading the launches.

Times on the clock are UTC in ISO 8601 text: it sorts, both databases read it, and no time zone can be lost.
``duration_ns`` is a double: exports print microseconds with decimals, and a double holds whole nanoseconds of up
to 104 days and fractions of shorter times; ``start_ns`` counts from 1970, which a double cannot hold, so it is an
integer.
"""

from typing import Any

from sqlalchemy import CheckConstraint, Column, Table, UniqueConstraint

from profsvc.store.deletions import deleted_uploads
from profsvc.store.event_schema import TABLES as EVENTS
from profsvc.store.night_schema import NIGHT
from profsvc.store.parts import integer, key, metadata, real, ref, row_id, table, text
from profsvc.store.power_schema import POWER
from profsvc.store.prediction_schema import predictions
from profsvc.store.schedule_schema import schedules, slots
from profsvc.store.token_schema import tokens
from profsvc.store.trace_schema import TRACES
from profsvc.store.wide_schema import TABLES as WIDE

STEP = 1_000_000_000
"""The step between the ids of two uploads' rows; a file may have one less of launches, of transfers, and so on."""

REPEATED = {
    name: 1 << bit
    for bit, name in enumerate(("transfers", "api_calls", "ranges", "kernel_summaries", "rules", "metrics"))
}
"""Bits of ``uploads.repeats``: what another file of the same execution tells as well, and is counted there."""

WHOLE = 0
"""Stands for "the whole run" in ``launch_id`` and "every kernel" in ``kernel_id`` of results: keys hold no null."""

facts = table("facts", text("name", primary_key=True), text("value", nullable=False))

texts = table("texts", row_id("text_id"), text("text", nullable=False, unique=True))
kernels = table(
    "kernels",
    row_id("kernel_id"),
    text("kernel", nullable=False, unique=True),
    text("kernel_short", nullable=False, index=True),
)
# An empty text stands for "none" in the dictionaries, because null is never equal to null in a unique key.
metric_names = table(
    "metric_names",
    row_id("metric_id"),
    text("metric", nullable=False),
    text("section", nullable=False),
    text("statistic", nullable=False),
    UniqueConstraint("metric", "section", "statistic"),
)
unit_names = table(
    "unit_names",
    row_id("unit_id"),
    text("unit", nullable=False),
    text("si_unit", nullable=False),
    UniqueConstraint("unit", "si_unit"),
)
model_names = table(
    "model_names",
    row_id("model_id"),
    text("model", nullable=False),
    text("quantity", nullable=False),
    text("unit", nullable=False),
    text("form", nullable=False),
    UniqueConstraint("model", "quantity", "unit", "form"),
)
devices = table(
    "devices",
    row_id("device_id"),
    text("name", nullable=False),
    text("compute_capability", nullable=False),
    integer("sms"),
    text("facts"),
    UniqueConstraint("name", "compute_capability"),
)

runs = table(
    "runs",
    row_id("run_id"),
    text("project", nullable=False),
    text("name", nullable=False),
    text("host"),
    text("commit_id"),
    text("started_at"),
    text("created_at", nullable=False),
    ref("device_id", "devices.device_id"),
    ref("version_id", "texts.text_id"),
    integer("changes", nullable=False, server_default="0"),
    UniqueConstraint("project", "name"),
    CheckConstraint("length(name) > 0", name="named"),
    sqlite_autoincrement=True,  # the number of a deleted run is not given again
)
run_tags = table(
    "run_tags",
    ref("run_id", "runs.run_id", cascade=True, primary_key=True),
    text("key", primary_key=True),
    text("value", nullable=False),
    clustered=True,
)
# A part of the analysis of a run, and the count of the run's changes that it was computed at.
finished_parts = table(
    "finished_parts",
    ref("run_id", "runs.run_id", cascade=True, primary_key=True),
    text("part", primary_key=True),
    integer("changes", nullable=False),
    ref("version_id", "texts.text_id", nullable=False),
    clustered=True,
)
uploads = table(
    "uploads",
    row_id("upload_id"),
    ref("run_id", "runs.run_id", cascade=True, nullable=False, index=True),
    text("file_name", nullable=False),
    text("sha256", nullable=False, index=True),
    integer("size_bytes", nullable=False),
    text("format", nullable=False),
    text("tool"),
    text("tool_version"),
    text("status", nullable=False),
    integer("lines", nullable=False),
    integer("lines_stored", nullable=False),
    integer("lines_skipped", nullable=False),
    integer("lines_rejected", nullable=False),
    integer("launches", nullable=False),
    integer("samples", nullable=False),
    real("gpu_time_ns"),
    integer("same_as"),
    text("same_as_reason"),
    integer("repeats"),
    text("message", nullable=False),
    text("facts", nullable=False),
    text("received_at", nullable=False),
    UniqueConstraint("run_id", "sha256"),
    CheckConstraint("length(sha256) = 64", name="sha256"),
    CheckConstraint("status IN ('stored', 'partial')", name="status"),
    CheckConstraint("lines = lines_stored + lines_skipped + lines_rejected", name="lines"),
    sqlite_autoincrement=True,
)
# The devices that launches of a file ran on, named or known by their compute capability alone.
upload_devices = table(
    "upload_devices",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    ref("device_id", "devices.device_id", primary_key=True),
    clustered=True,
)
rejects = table(
    "rejects",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    key("item"),
    integer("line", nullable=False),
    integer("lines", nullable=False),
    text("reason", nullable=False),
    text("text", nullable=False),
    clustered=True,
)
characterizations = table(
    "characterizations",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    key("item"),
    text("device", nullable=False),
    text("quantity", nullable=False),
    real("x"),
    real("y", nullable=False),
    text("unit"),
    text("method"),
    integer("line", nullable=False),
    clustered=True,
)
# What many launches share is written once: where they ran, and what was launched. ``key`` is the other columns.
places = table(
    "places",
    row_id("place_id"),
    text("key", nullable=False, unique=True),
    ref("device_id", "devices.device_id"),
    ref("host_id", "texts.text_id"),
    ref("process_name_id", "texts.text_id"),
    integer("process_id"),
    integer("device_index"),
    integer("context"),
    integer("stream"),
)
shapes = table(
    "shapes",
    row_id("shape_id"),
    text("key", nullable=False, unique=True),
    ref("kernel_id", "kernels.kernel_id", nullable=False, index=True),
    integer("block_x"),
    integer("block_y"),
    integer("block_z"),
    integer("registers_per_thread"),
    integer("shared_mem_static_bytes"),
)
launches = table(
    "launches",
    key("launch_id"),
    integer("place_id", nullable=False),
    integer("shape_id", nullable=False),
    integer("grid_x"),
    integer("grid_y"),
    integer("grid_z"),
    integer("shared_mem_dynamic_bytes"),
    integer("start_ns"),
    real("duration_ns"),
    text("source_id"),
    integer("correlation_id"),
    integer("line", nullable=False),
)
# Launches of files that are marked with another (``uploads.same_as``), and the launch of that one which each is.
twins = table("twins", key("launch_id"), integer("first_id", nullable=False, index=True))
# All launches of a kernel in a file, summed up when the file is stored.
kernel_totals = table(
    "kernel_totals",
    ref("kernel_id", "kernels.kernel_id", primary_key=True),
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True, index=True),
    integer("launches", nullable=False),
    integer("timed", nullable=False),
    real("total_ns"),
    real("min_ns"),
    real("p50_ns"),
    real("p95_ns"),
    real("max_ns"),
    clustered=True,
)
timelines = table(
    "timelines",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    integer("first_ns"),
    real("span_ns"),
    real("busy_ns"),
    integer("last_start_ns"),
    real("last_end_ns"),
    real("total_ns"),
    integer("overlapped"),
    integer("suspected"),
)
metrics = table(
    "metrics",
    key("launch_ref"),
    key("item"),
    integer("kernel_id"),
    integer("invocations"),
    integer("metric_id", nullable=False),
    integer("unit_id", nullable=False),
    text("raw_text", nullable=False),
    real("value"),
    text("reason"),
    integer("line", nullable=False),
    clustered=True,
)
sensors = table(
    "sensors",
    key("sensor_id"),
    text("quantity", nullable=False),
    text("name", nullable=False),
    text("unit", nullable=False),
    integer("gpu_index"),
    text("device"),
    real("x_mm"),
    real("y_mm"),
    text("quality"),
    integer("line"),
    integer("samples", nullable=False),
    integer("time_origin_ns"),
    integer("local_origin_ns"),
    real("plausible_low"),
    real("plausible_high"),
    integer("implausible"),
)
samples = table(
    "samples",
    key("sample_id"),
    integer("elapsed_ns"),
    integer("time_shift_ns"),
    integer("local_shift_ns"),
    real("value"),
    integer("reason_id"),
    integer("index_shift", nullable=False),
    integer("line_shift", nullable=False),
)
sample_blocks = table(
    "sample_blocks",
    key("sensor_id"),
    key("first_id"),
    integer("last_id", nullable=False),
    integer("first_index", nullable=False),
    integer("first_line", nullable=False),
    clustered=True,
)
rules = table(
    "rules",
    ref("launch_id", "launches.launch_id", cascade=True, primary_key=True),
    key("item"),
    ref("section_id", "texts.text_id"),
    ref("rule_id", "texts.text_id", nullable=False),
    ref("rule_type_id", "texts.text_id"),
    ref("kind_id", "texts.text_id"),
    real("estimated_saving_fraction"),
    real("estimated_speedup"),
    text("message", nullable=False),
    integer("line", nullable=False),
    clustered=True,
)
counters = table(
    "counters",
    ref("launch_id", "launches.launch_id", cascade=True, primary_key=True),
    ref("counter_id", "texts.text_id", primary_key=True),
    real("value"),
    ref("expression_id", "texts.text_id"),
    ref("reason_id", "texts.text_id"),
    clustered=True,
)


def _results(name: str, keys: list[Column[int]], *values: Column[Any]) -> Table:
    """Make a table of results: a row a subject (launch, kernel or whole run), key and version of the analysis.

    The version is part of the key: rows of an older version stay beside those of the newest.
    """
    return table(
        name,
        ref("run_id", "runs.run_id", cascade=True, primary_key=True),
        key("launch_id"),
        key("kernel_id"),
        *keys,
        ref("version_id", "texts.text_id", primary_key=True),
        *values,
        integer("flags", nullable=False),
        ref("reason_id", "texts.text_id"),
        clustered=True,
    )


criteria = _results(
    "criteria",
    [ref("criterion_id", "texts.text_id", primary_key=True)],
    real("value"),
    real("share"),
    real("speedup"),
    real("value_as_published"),
    real("speedup_as_published"),
)
potential = _results(
    "potential",
    [],
    ref("bound_id", "texts.text_id"),
    ref("ideal_bound_id", "texts.text_id"),
    real("mem_throughput_ratio"),
    real("arith_throughput_ratio"),
    real("speedup"),
    real("speedup_as_published"),
    real("speedup_ceiling"),
    real("ideal_ns"),
    real("duration_ns"),
    integer("ceiling_flags"),
)
models = _results(
    "models",
    [ref("model_id", "model_names.model_id", primary_key=True)],
    real("value"),
    integer("label_id"),
)

RESULTS = {"criteria": criteria, "potential": potential, "models": models}

__all__ = [
    "EVENTS", "NIGHT", "POWER", "REPEATED", "RESULTS", "STEP", "TRACES", "WHOLE", "WIDE", "deleted_uploads", "metadata",
    "predictions", "schedules", "slots", "tokens",
]  # fmt: skip
