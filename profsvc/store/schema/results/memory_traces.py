"""Base tables and views of simulated memory traces; the references themselves are only in the kept bytes."""

from profsvc.store.schema.column_types import fields, integer, key, real, ref, table
from profsvc.store.schema.view_definition import FLAG_NAMES_SQL, ViewDefinition, view_columns

CACHE_SIZES = ("sms", "slots", "l1_sets", "l1_ways", "l2_sets", "l2_ways", "line_bytes")
HIT_RATIOS = ("l1_load_ratio", "l1_store_ratio", "l2_load_ratio", "l2_store_ratio")

TRACES = {
    "traces": table(
        "traces",
        ref("upload_id", "uploads.upload_id", cascade=True, primary_key=True),
        *fields(
            "kernel text?, device text?, references_read int, lines int, blocks int, blocks_left_out int, draws int",
        ),
        *map(integer, CACHE_SIZES),
        *fields("flags int, reason text?, version text"),
    ),
    "trace_draws": table(
        "trace_draws",
        ref("upload_id", "traces.upload_id", cascade=True, primary_key=True),
        key("draw"),
        *map(real, HIT_RATIOS),
        real("dram_lines", nullable=False),
        clustered=True,
    ),
    "trace_sites": table(
        "trace_sites",
        ref("upload_id", "traces.upload_id", cascade=True, primary_key=True),
        key("item"),
        *fields("site text, requests int, lines_per_request float?, l1_ratio float?, l2_ratio float?"),
        clustered=True,
    ),
}

_FILE = view_columns(
    "c",
    "upload_id | int | upload number",
    "run_id | int | u.run_id | run of the file",
)

_SOURCE = "{table} c JOIN uploads u ON u.upload_id = c.upload_id"

_KERNEL = ("kernel", "text", "t.kernel", "kernel name given by the trace")

_TRACE_SOURCE = f"{_SOURCE} JOIN traces t ON t.upload_id = c.upload_id"

_CACHE_SIZE_MEANINGS = {
    "sms": "number of SMs of the device",
    "slots": "number of resident blocks per SM",
    "l1_sets": "number of sets of an L1 cache",
    "l1_ways": "assumed associativity of L1, without shared memory",
    "l2_sets": "number of sets of the L2 cache",
    "l2_ways": "assumed associativity of L2",
    "line_bytes": "size of a cache line",
}

_HIT_RATIO_MEANINGS = {
    "l1_load_ratio": "L1 hit ratio of load sectors (of lines without sectors)",
    "l1_store_ratio": "L1 hit ratio of store sectors, if L1 caches stores",
    "l2_load_ratio": "L2 hit ratio of load sectors",
    "l2_store_ratio": "L2 hit ratio of store and atomic sectors",
}

VIEW_DEFINITIONS = {
    "v1_traces": ViewDefinition(
        "Memory traces, with the caches that were simulated.",
        _SOURCE.format(table="traces"),
        view_columns(
            "c",
            *_FILE,
            "kernel | text | kernel name given by the trace",
            "device | text | device whose caches were simulated, from the catalogue",
            "references_read | int | number of memory references in the file",
            "lines | int | number of lines requested by the warps, per order",
            "blocks | int | number of simulated blocks",
            "blocks_left_out | int | number of later blocks that were not simulated",
            "draws | int | number of random draws of the warp order and the cache hashes",
            *((name, "int", f"c.{name}", _CACHE_SIZE_MEANINGS[name]) for name in CACHE_SIZES),
            f"flags | text | {FLAG_NAMES_SQL} | data-quality warnings, separated by spaces",
            "reason | text | reason if nothing was simulated",
            "version | text | version of the simulation",
        ),
    ),
    "v1_trace_draws": ViewDefinition(
        "Hit ratios of memory traces for each random order of the warps.",
        _TRACE_SOURCE.format(table="trace_draws"),
        view_columns(
            "c",
            *_FILE,
            _KERNEL,
            "draw | int | ordinal of the draw, from 0",
            *((name, "float", f"c.{name}", _HIT_RATIO_MEANINGS[name]) for name in HIT_RATIOS),
            "dram_lines | float | lines read from DRAM: bytes divided by the line size",
        ),
    ),
    "v1_trace_sites": ViewDefinition(
        "Hit ratios of memory traces per source instruction, over all draws.",
        _TRACE_SOURCE.format(table="trace_sites"),
        view_columns(
            "c",
            *_FILE,
            _KERNEL,
            "site | text | instruction, as named by the trace",
            "requests | int | number of warp requests",
            "lines_per_request | float | mean number of lines per request",
            "l1_ratio | float | L1 hit ratio of its sectors; null if it bypasses L1",
            "l2_ratio | float | L2 hit ratio of its sectors; null if none reached L2",
        ),
    ),
}
