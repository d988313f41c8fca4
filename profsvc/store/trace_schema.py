"""The base tables of what was simulated of memory traces; the references themselves are in the kept bytes alone."""

from profsvc.store.parts import integer, key, real, ref, table, text

HIERARCHY = ("sms", "slots", "l1_sets", "l1_ways", "l2_sets", "l2_ways", "line_bytes")
RATIOS = ("l1_load_ratio", "l1_store_ratio", "l2_load_ratio", "l2_store_ratio")

TRACES = {
    "traces": table(
        "traces",
        ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
        text("kernel"),
        text("device"),
        integer("references_read", nullable=False),
        integer("lines", nullable=False),
        integer("blocks", nullable=False),
        integer("blocks_left_out", nullable=False),
        integer("draws", nullable=False),
        *map(integer, HIERARCHY),
        integer("flags", nullable=False),
        text("reason"),
        text("version", nullable=False),
    ),
    "trace_draws": table(
        "trace_draws",
        ref("upload_id", "traces.upload_id", cascade=True, primary_key=True),
        key("draw"),
        *map(real, RATIOS),
        real("dram_lines", nullable=False),
        clustered=True,
    ),
    "trace_sites": table(
        "trace_sites",
        ref("upload_id", "traces.upload_id", cascade=True, primary_key=True),
        key("item"),
        text("site", nullable=False),
        integer("requests", nullable=False),
        real("lines_per_request"),
        real("l1_ratio"),
        real("l2_ratio"),
        clustered=True,
    ),
}
