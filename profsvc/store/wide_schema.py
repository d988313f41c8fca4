"""The base tables of metrics that are kept column by column; `profsvc.store.wide` says what is in them."""

from profsvc.store.parts import integer, key, real, row_id, table, text

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
    integer("launches", nullable=False),
    integer("layout_id", nullable=False),
    integer("first_cell", nullable=False),
)
wide_cells = table("wide_cells", key("cell_id"), integer("list_id", nullable=False), text("lines"))
wide_lists = table("wide_lists", key("list_id"), text("ending", nullable=False), text("texts", nullable=False))
wide_constants = table(
    "wide_constants", key("cell_id"), text("raw_text", nullable=False), real("value"), text("reason"), text("lines")
)

TABLES = (wide_layouts, wide_columns, wide_blocks, wide_cells, wide_lists, wide_constants)
