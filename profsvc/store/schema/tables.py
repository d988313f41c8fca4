"""The base tables. They are private: people query the views of `profsvc.store.schema.catalog`.

How the rows stay small, and quick to find without indexes on the big tables:

* Names are written once (``kernels``, ``metric_names``, ``unit_names``, ``model_names``, ``cause_names``, ``texts``)
  and referred to by number.
* ``launch_id = upload_id * IDS_PER_UPLOAD + launch_index + 1``, and likewise the ids of transfers, calls, ranges,
  summaries, sensors and samples. So the rows of an upload are adjacent in their primary keys, ids are known without a
  query, the rows of a run are ranges of ids, and no row needs to name its upload. In ``metrics.launch_ref``,
  ``upload_id * IDS_PER_UPLOAD`` itself means the whole file.
* ``launches``, ``metrics``, ``samples`` and the tables of events have no foreign keys, because checking them costs 40 %
  of the loading time. `profsvc.store.ingest.upload` only writes numbers that it just assigned, and deletes by range. On
  Postgres no table refers to ``launches`` either, because the look-ups took 90 % of the time of a deletion. Without
  them, partitions cost more than they gain: ``python -m tests.benchmarks.partitions``.
* On Postgres rules and results of launches have no foreign keys either: the look-ups took 85 % of the time of writing
  results. Names are never deleted, and who writes results of a run, or deletes it, locks its row first.
* Pages with one column per metric are stored column by column; see `profsvc.store.ingest.writers.wide_metrics`.
* Many launches share a place and a shape; a launch refers to both and only stores what differs.
* The readings of a sensor in one batch form a block. ``sample_blocks`` names their sensor, and their ordinals and lines
  count up from those of the block, plus a shift that is nearly always 0. A packed block, of readings without anything
  special, has no rows in ``samples``: it holds them as a list of numbers, by
  `profsvc.store.ingest.writers.packed_samples`.
* A sample has one time, ``elapsed_ns``. Its clocks are stored as differences from it and from their origins in
  ``sensors``. These differences are nearly always 0 or null, which take no space.
* ``kernel_totals``, ``place_totals``, ``shape_totals`` and ``transfer_totals`` answer the usual queries on traces
  without reading launches and transfers.
* ``cause_totals`` and ``criterion_totals`` answer those on the results of all launches of a kernel.
* ``listed_launches`` has the launches of long files that pages show. It is deleted with its file, like the launches.

Times of day are ISO 8601 texts in UTC, which sort, are read by both databases and cannot lose their time zone.
``duration_ns`` is a double, because exports print microseconds with decimals. A double represents whole nanoseconds up
to 104 days. ``start_ns`` counts from 1970, which exceeds that, so it is an integer.
"""

from profsvc.store.schema.archives import TABLES as ARCHIVES
from profsvc.store.schema.column_types import (
    check,
    fields,
    integer,
    key,
    make_metadata,
    real,
    ref,
    row_id,
    table,
    text,
    unique,
)
from profsvc.store.schema.contents.events import TABLES as EVENTS
from profsvc.store.schema.contents.sensors import sample_blocks, samples, sensors
from profsvc.store.schema.contents.source import KEYS as SOURCE_KEYS
from profsvc.store.schema.contents.wide_metrics import TABLES as WIDE
from profsvc.store.schema.results.findings import NIGHTLY_TABLES
from profsvc.store.schema.results.launch_results import RESULTS
from profsvc.store.schema.results.memory_traces import TRACES
from profsvc.store.schema.results.power import POWER
from profsvc.store.schema.results.predictions import predictions
from profsvc.store.schema.results.wall_time import WALL_TIME_TABLE
from profsvc.store.schema.service import saved_queries, schedules, slots, tokens

facts = table("facts", text("name", primary_key=True), text("value", nullable=False))

texts = table("texts", row_id("text_id"), text("text", nullable=False, unique=True))
kernels = table(
    "kernels",
    row_id("kernel_id"),
    text("kernel", nullable=False, unique=True),
    text("kernel_short", nullable=False, index=True),
)
# An empty text means "none" in the dictionaries, because null never equals null in a unique key.
metric_names = table(
    "metric_names",
    row_id("metric_id"),
    *fields("metric text, section text, statistic text"),
    unique("metric", "section", "statistic"),
)
unit_names = table(
    "unit_names",
    row_id("unit_id"),
    text("unit", nullable=False),
    text("si_unit", nullable=False),
    unique("unit", "si_unit"),
)
model_names = table(
    "model_names",
    row_id("model_id"),
    *fields("model text, quantity text, unit text, form text"),
    unique("model", "quantity", "unit", "form"),
)
cause_names = table(
    "cause_names",
    row_id("cause_id"),
    *fields("cause text, title text, kind text, first_step text, evidence text"),
    unique("cause", "title", "kind", "first_step", "evidence"),
)
devices = table(
    "devices",
    row_id("device_id"),
    *fields("name text, compute_capability text, sms int?, facts text?"),
    unique("name", "compute_capability"),
)

runs = table(
    "runs",
    row_id("run_id"),
    text("project", nullable=False),
    text("name", nullable=False, index=True),
    *fields("host text?, commit_id text?, started_at text?, created_at text"),
    ref("device_id", "devices.device_id"),
    ref("version_id", "texts.text_id"),
    integer("changes", nullable=False, server_default="0"),
    unique("project", "name"),
    check("length(name) > 0", "named"),
    sqlite_autoincrement=True,  # the number of a deleted run is not reused
)
run_tags = table(
    "run_tags",
    ref("run_id", "runs.run_id", cascade=True, primary_key=True),
    text("key", primary_key=True),
    text("value", nullable=False),
    clustered=True,
)
# The parts of the analysis of a run, each with the change count of the run when it was computed.
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
    *fields(
        "size_bytes int, format text, tool text?, tool_version text?, status text, lines int, lines_stored int",
        "lines_skipped int, lines_rejected int, launches int, samples int, gpu_time_ns float?, same_as int?",
        "same_as_reason text?, repeats int?, message text, facts text, received_at text, archive_id int?",
    ),
    unique("run_id", "sha256"),
    check("length(sha256) = 64", "sha256"),
    check("status IN ('stored', 'partial')", "status"),
    check("lines = lines_stored + lines_skipped + lines_rejected", "lines"),
    sqlite_autoincrement=True,
)
# The devices that launches of a file ran on, by name or only by compute capability.
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
    *fields("line int, lines int, reason text, text text"),
    clustered=True,
)
characterizations = table(
    "characterizations",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    key("item"),
    *fields("device text, quantity text, x float?, y float, unit text?, method text?, line int"),
    clustered=True,
)
# Properties shared by many launches: where they ran, and their shape. ``key`` combines the other columns.
places = table(
    "places",
    row_id("place_id"),
    text("key", nullable=False, unique=True),
    ref("device_id", "devices.device_id"),
    ref("host_id", "texts.text_id"),
    ref("process_name_id", "texts.text_id"),
    *fields("process_id int?, device_index int?, context int?, stream int?"),
)
launch_shapes = table(
    "shapes",
    row_id("shape_id"),
    text("key", nullable=False, unique=True),
    ref("kernel_id", "kernels.kernel_id", nullable=False, index=True),
    *fields("block_x int?, block_y int?, block_z int?, registers_per_thread int?, shared_mem_static_bytes int?"),
)
launches = table(
    "launches",
    key("launch_id"),
    *fields(
        "place_id int, shape_id int, grid_x int?, grid_y int?, grid_z int?, shared_mem_dynamic_bytes int?",
        "start_ns int?, duration_ns float?, source_id text?, correlation_id int?, line int",
    ),
)
# Launches of files with ``uploads.same_as``, each with the launch of that file which represents it.
twins = table("twins", key("launch_id"), integer("first_id", nullable=False, index=True))
# Totals per kernel and file, computed when the file is stored.
kernel_totals = table(
    "kernel_totals",
    ref("kernel_id", "kernels.kernel_id", primary_key=True),
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True, index=True),
    *fields("launches int, timed int, total_ns float?, min_ns float?, p50_ns float?, p95_ns float?, max_ns float?"),
    clustered=True,
)
# Totals per kind of transfer and file; ``bytes`` is null if the sum exceeds 64 bits, or if no transfer has a size.
transfer_totals = table(
    "transfer_totals",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    key("kind_id"),
    *fields("transfers int, total_ns float?, bytes int?"),
    clustered=True,
)
# Number of launches of a file per place.
place_totals = table(
    "place_totals",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    key("place_id"),
    integer("launches", nullable=False),
    clustered=True,
)
# Number and range of sizes of the launches of a file per shape.
shape_totals = table(
    "shape_totals",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    key("shape_id"),
    *fields(
        "launches int, min_grid_x int?, max_grid_x int?, min_grid_y int?, max_grid_y int?, min_grid_z int?",
        "max_grid_z int?, min_shared_mem_dynamic_bytes int?, max_shared_mem_dynamic_bytes int?",
    ),
    clustered=True,
)
# Files with so many launches that the ends of their orders are in ``listed_launches``: the longest and the shortest of
# the file (for the kernel 0), and the longest, shortest, first and last of each kernel; ``depth`` is their number.
launch_lists = table(
    "launch_lists",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    *fields("depth int, kernel_depth int"),
)
listed_launches = table(
    "listed_launches", key("upload_id"), key("kernel_id"), key("launch_id"), real("duration_ns"), clustered=True
)
timelines = table(
    "timelines",
    ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    *fields(
        "first_ns int?, span_ns float?, busy_ns float?, last_start_ns int?, last_end_ns float?, total_ns float?",
        "overlapped int?, suspected int?",
    ),
)
metrics = table(
    "metrics",
    key("launch_ref"),
    key("item"),
    *fields(
        "kernel_id int?, invocations int?, metric_id int, unit_id int, raw_text text, value float?, reason text?",
        "line int",
    ),
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
    *fields(
        "estimated_saving_fraction float?, estimated_speedup float?, message text, line int", "focus_metrics text?"
    ),
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

__all__ = [
    "ARCHIVES", "EVENTS", "NIGHTLY_TABLES", "POWER", "RESULTS", "SOURCE_KEYS", "TRACES", "WALL_TIME_TABLE", "WIDE",
    "deleted_uploads", "metadata", "predictions", "sample_blocks", "samples", "saved_queries", "schedules", "sensors",
    "slots", "tokens",
]  # fmt: skip


# Records of deleted uploads and their runs, kept until the bytes are removed permanently.
deleted_uploads = table(
    "deleted_uploads",
    key("upload_id"),
    *fields(
        "run_id int, project text, run text, run_facts text, file_name text, sha256 text, size_bytes int, format text",
        "launches int, samples int, facts text, received_at text, deleted_at text",
    ),
)

metadata = make_metadata()
