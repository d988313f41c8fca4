"""Base tables of metrics in columnar storage; `profsvc.store.ingest.writers.wide_metrics` describes the contents."""

from profsvc.store.schema.column_types import fields, integer, key, real, row_id, table, text

wide_layouts = table("wide_layouts", row_id("layout_id"), text("digest", nullable=False, unique=True))
wide_columns = table(
    "wide_columns",
    key("layout_id"),
    key("metric_id"),
    key("place"),
    integer("unit_id", nullable=False),
    real("factor", nullable=False),
    clustered=True,
)
wide_blocks = table(
    "wide_blocks",
    key("first_launch"),
    *fields("launches int, layout_id int, first_cell int"),
)
wide_cells = table("wide_cells", key("cell_id"), integer("list_id", nullable=False), text("lines"))
wide_lists = table("wide_lists", key("list_id"), text("ending", nullable=False), text("texts", nullable=False))
wide_constants = table(
    "wide_constants", key("cell_id"), text("raw_text", nullable=False), real("value"), text("reason"), text("lines")
)

TABLES = (wide_layouts, wide_columns, wide_blocks, wide_cells, wide_lists, wide_constants)

MAX_BLOCK_LAUNCHES = 64
"""Maximum number of launches per block. The limit keeps reading a single launch fast and rows well below a page."""

MAX_DIGITS = 18


# ``point`` is the position of the decimal point in the text, 0 for none; the databases name this function differently.
RAW_TEXT_SQL = (
    "CASE {ending} WHEN '' THEN {text}"
    " ELSE {text} || substr({ending}, CASE {point} WHEN 0 THEN 1 ELSE length({text}) - {point} + 2 END) END"
)

_POWERS = " ".join(f"WHEN {power} THEN {10**power}.0" for power in range(MAX_DIGITS + 1))


# The same SQL reads the numbers on both databases, because their own conversions of text round differently.
VALUE_SQL = (
    "CAST(CAST(NULLIF(replace(replace({text}, ',', ''), '.', ''), '') AS BIGINT) AS DOUBLE PRECISION)"
    f" / CAST(CASE CASE {{point}} WHEN 0 THEN 0 ELSE length({{text}}) - {{point}} END {_POWERS} END"
    " AS DOUBLE PRECISION) * {factor}"
)

_WIDTH = "length(w.lines) / b.launches"

LINE_SQL = (
    "CAST(l.line + CASE WHEN w.lines IS NULL THEN 0 WHEN substr(w.lines, 1, 1) <> ' ' THEN CAST(w.lines AS BIGINT)"
    f" ELSE CAST(substr(w.lines, 1 + CAST(l.launch_id - b.first_launch AS INTEGER) * CAST({_WIDTH} AS INTEGER),"
    f" CAST({_WIDTH} AS INTEGER)) AS BIGINT) END AS BIGINT)"
)
