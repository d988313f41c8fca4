"""The base tables. They are private: people query the views of `profsvc.store.views`.

How the rows are kept small and in reach without indexes on the big tables:

* Names are written once (``kernels``, ``metric_names``, ``unit_names``, ``model_names``, ``texts``) and
  referred to by number.
* ``launch_id = upload_id * LAUNCHES + launch_index + 1``. So the launches and the metrics of an upload lie
  together in their primary keys, a launch's id is known without asking the database, and the launches of a run
  are a range of ids. ``upload_id * LAUNCHES`` itself stands for the whole file in ``metrics.launch_ref``.
* ``metrics`` has no foreign keys: checking them costs two fifths of a load. `profsvc.store.load` writes only
  numbers that it just made, and deletes by range.
* A launch refers to its upload with a cascade but without an index: rows go by range first, so the cascade
  finds nothing, and an index would cost a third of a load.

Times on the clock are UTC in ISO 8601 text: it sorts, both databases read it, and no time zone can be lost.
``duration_ns`` is a double: exports print microseconds with decimals, and a double holds whole nanoseconds of up
to 104 days and fractions of shorter times; ``start_ns`` counts from 1970, which a double cannot hold, so it is an
integer.
"""

from typing import Any

from sqlalchemy import (
    REAL,
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

LAUNCHES = 1_000_000_000
"""How many launches a file may have, less one; the step between the launch ids of two uploads."""

WHOLE = 0
"""Stands for "the whole run" in ``launch_id`` and "every kernel" in ``kernel_id`` of results: keys hold no null."""

# The one place where column types differ: SQLite's strict tables know only these names.
Int: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
Real: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _table(name: str, *items: Any, clustered: bool = False, **options: Any) -> Table:
    """Make a table; ``clustered`` keeps its rows in the order of the primary key (SQLite: no row ids)."""
    return Table(name, metadata, *items, sqlite_strict=True, sqlite_with_rowid=not clustered, **options)


def _id(name: str) -> Column[int]:
    return Column(name, Int, primary_key=True)


def _key(name: str) -> Column[int]:
    return Column(name, Int, primary_key=True, autoincrement=False)


def _ref(name: str, target: str, cascade: bool = False, **options: Any) -> Column[int]:
    key = ForeignKey(target, ondelete="CASCADE" if cascade else None)
    return Column(name, Int, key, autoincrement=False, **options)


def _int(name: str, **options: Any) -> Column[int]:
    return Column(name, Int, **options)


def _real(name: str, **options: Any) -> Column[float]:
    return Column(name, Real, **options)


def _text(name: str, **options: Any) -> Column[str]:
    return Column(name, Text, **options)


facts = _table("facts", _text("name", primary_key=True), _text("value", nullable=False))

texts = _table("texts", _id("text_id"), _text("text", nullable=False, unique=True))
kernels = _table(
    "kernels",
    _id("kernel_id"),
    _text("kernel", nullable=False, unique=True),
    _text("kernel_short", nullable=False, index=True),
)
# An empty text stands for "none" in the dictionaries, because null is never equal to null in a unique key.
metric_names = _table(
    "metric_names",
    _id("metric_id"),
    _text("metric", nullable=False),
    _text("section", nullable=False),
    UniqueConstraint("metric", "section"),
)
unit_names = _table(
    "unit_names",
    _id("unit_id"),
    _text("unit", nullable=False),
    _text("si_unit", nullable=False),
    UniqueConstraint("unit", "si_unit"),
)
model_names = _table(
    "model_names",
    _id("model_id"),
    _text("model", nullable=False),
    _text("quantity", nullable=False),
    _text("unit", nullable=False),
    _text("form", nullable=False),
    UniqueConstraint("model", "quantity", "unit", "form"),
)
devices = _table(
    "devices",
    _id("device_id"),
    _text("name", nullable=False),
    _text("compute_capability", nullable=False),
    _int("sms"),
    _text("facts"),
    UniqueConstraint("name", "compute_capability"),
)

runs = _table(
    "runs",
    _id("run_id"),
    _text("project", nullable=False),
    _text("name", nullable=False),
    _text("host"),
    _text("commit_id"),
    _text("started_at"),
    _text("created_at", nullable=False),
    _ref("device_id", "devices.device_id"),
    _ref("version_id", "texts.text_id"),
    UniqueConstraint("project", "name"),
    CheckConstraint("length(name) > 0", name="named"),
    sqlite_autoincrement=True,  # the number of a deleted run is not given again
)
run_tags = _table(
    "run_tags",
    _ref("run_id", "runs.run_id", cascade=True, primary_key=True),
    _text("key", primary_key=True),
    _text("value", nullable=False),
    clustered=True,
)
uploads = _table(
    "uploads",
    _id("upload_id"),
    _ref("run_id", "runs.run_id", cascade=True, nullable=False, index=True),
    _text("file_name", nullable=False),
    _text("sha256", nullable=False, unique=True),
    _int("size_bytes", nullable=False),
    _text("format", nullable=False),
    _text("tool"),
    _text("tool_version"),
    _text("status", nullable=False),
    _int("lines", nullable=False),
    _int("lines_stored", nullable=False),
    _int("lines_skipped", nullable=False),
    _int("lines_rejected", nullable=False),
    _int("launches", nullable=False),
    _real("gpu_time_ns"),
    _int("same_as"),
    _text("message", nullable=False),
    _text("facts", nullable=False),
    _text("received_at", nullable=False),
    CheckConstraint("length(sha256) = 64", name="sha256"),
    CheckConstraint("status IN ('stored', 'partial')", name="status"),
    CheckConstraint("lines = lines_stored + lines_skipped + lines_rejected", name="lines"),
    sqlite_autoincrement=True,
)
rejects = _table(
    "rejects",
    _ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    _key("item"),
    _int("line", nullable=False),
    _int("lines", nullable=False),
    _text("reason", nullable=False),
    _text("text", nullable=False),
    clustered=True,
)
characterizations = _table(
    "characterizations",
    _ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
    _key("item"),
    _text("device", nullable=False),
    _text("quantity", nullable=False),
    _real("x"),
    _real("y", nullable=False),
    _text("unit"),
    _text("method"),
    _int("line", nullable=False),
    clustered=True,
)
launches = _table(
    "launches",
    _key("launch_id"),
    _ref("upload_id", "uploads.upload_id", cascade=True, nullable=False),
    _int("run_id", nullable=False),
    _int("launch_index", nullable=False),
    _ref("kernel_id", "kernels.kernel_id", nullable=False),
    _ref("device_id", "devices.device_id"),
    _ref("host_id", "texts.text_id"),
    _ref("process_name_id", "texts.text_id"),
    _text("source_id"),
    _int("process_id"),
    _int("device_index"),
    _int("context"),
    _int("stream"),
    _int("start_ns"),
    _real("duration_ns"),
    _int("grid_x"),
    _int("grid_y"),
    _int("grid_z"),
    _int("block_x"),
    _int("block_y"),
    _int("block_z"),
    _int("line", nullable=False),
)
metrics = _table(
    "metrics",
    _key("launch_ref"),
    _key("item"),
    _int("kernel_id"),
    _int("metric_id", nullable=False),
    _int("unit_id", nullable=False),
    _text("raw_text", nullable=False),
    _real("value"),
    _text("reason"),
    _int("line", nullable=False),
    clustered=True,
)
rules = _table(
    "rules",
    _ref("launch_id", "launches.launch_id", cascade=True, primary_key=True),
    _key("item"),
    _ref("section_id", "texts.text_id"),
    _ref("rule_id", "texts.text_id", nullable=False),
    _ref("rule_type_id", "texts.text_id"),
    _ref("kind_id", "texts.text_id"),
    _real("estimated_saving_fraction"),
    _real("estimated_speedup"),
    _text("message", nullable=False),
    _int("line", nullable=False),
    clustered=True,
)
counters = _table(
    "counters",
    _ref("launch_id", "launches.launch_id", cascade=True, primary_key=True),
    _ref("counter_id", "texts.text_id", primary_key=True),
    _real("value"),
    _ref("expression_id", "texts.text_id"),
    _ref("reason_id", "texts.text_id"),
    clustered=True,
)


def _results(name: str, keys: list[Column[int]], *values: Column[Any]) -> Table:
    """Make a table of results: a row a subject (launch, kernel or whole run), key and version of the analysis.

    The version is part of the key: rows of an older version stay beside those of the newest.
    """
    return _table(
        name,
        _ref("run_id", "runs.run_id", cascade=True, primary_key=True),
        _key("launch_id"),
        _key("kernel_id"),
        *keys,
        _ref("version_id", "texts.text_id", primary_key=True),
        *values,
        _int("flags", nullable=False),
        _ref("reason_id", "texts.text_id"),
        clustered=True,
    )


criteria = _results(
    "criteria",
    [_ref("criterion_id", "texts.text_id", primary_key=True)],
    _real("value"),
    _real("share"),
    _real("speedup"),
    _real("value_as_published"),
    _real("speedup_as_published"),
)
potential = _results(
    "potential",
    [],
    _ref("bound_id", "texts.text_id"),
    _ref("ideal_bound_id", "texts.text_id"),
    _real("mem_throughput_ratio"),
    _real("arith_throughput_ratio"),
    _real("speedup"),
    _real("speedup_as_published"),
    _real("speedup_ceiling"),
    _real("ideal_ns"),
    _real("duration_ns"),
)
models = _results(
    "models",
    [_ref("model_id", "model_names.model_id", primary_key=True)],
    _real("value"),
)

RESULTS = {"criteria": criteria, "potential": potential, "models": models}

__all__ = ["LAUNCHES", "RESULTS", "WHOLE", "metadata"]
