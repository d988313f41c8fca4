"""The views of what was simulated of memory traces."""

from profsvc.store.shapes import FLAG_NAMES, Shape
from profsvc.store.trace_schema import HIERARCHY, RATIOS

_FILE = (
    ("upload_id", "int", "c.upload_id", "the file"),
    ("run_id", "int", "u.run_id", "its run"),
)
_SOURCE = "{table} c JOIN uploads u ON u.upload_id = c.upload_id"
_KERNEL = ("kernel", "text", "t.kernel", "kernel that the trace is of, as it says")
_OF_TRACE = f"{_SOURCE} JOIN traces t ON t.upload_id = c.upload_id"
_SIZES = {
    "sms": "SMs of the device",
    "slots": "blocks that are resident on an SM together",
    "l1_sets": "sets of an L1 cache",
    "l1_ways": "lines of a set of L1, assumed; without shared memory",
    "l2_sets": "sets of the L2 cache",
    "l2_ways": "lines of a set of L2, assumed",
    "line_bytes": "bytes of a line",
}
_MEANT = {
    "l1_load_ratio": "share of the sectors of loads (lines where they have none) that L1 answered",
    "l1_store_ratio": "share of the sectors of stores that were in L1, where it keeps stores",
    "l2_load_ratio": "share of the sectors of loads that reached L2 and that it answered",
    "l2_store_ratio": "the same of stores and atomics",
}
SHAPES = {
    "v1_traces": Shape(
        "A memory trace, and the caches that it was taken through.",
        _SOURCE.format(table="traces"),
        (
            *_FILE,
            ("kernel", "text", "c.kernel", "kernel that the trace is of, as it says"),
            ("device", "text", "c.device", "device whose caches were simulated, by the catalogue"),
            ("references_read", "int", "c.references_read", "references of the file"),
            ("lines", "int", "c.lines", "lines that its warps ask for, of each order"),
            ("blocks", "int", "c.blocks", "blocks that were simulated"),
            ("blocks_left_out", "int", "c.blocks_left_out", "blocks behind them, which were not"),
            ("draws", "int", "c.draws", "orders that were drawn, and with them the hashes of the caches"),
            *((name, "int", f"c.{name}", _SIZES[name]) for name in HIERARCHY),
            ("flags", "text", FLAG_NAMES, "what to beware of, names with a space between"),
            ("reason", "text", "c.reason", "why nothing was simulated"),
            ("version", "text", "c.version", "version of the simulation"),
        ),
    ),
    "v1_trace_draws": Shape(
        "Hit ratios of a memory trace in one random order of its warps.",
        _OF_TRACE.format(table="trace_draws"),
        (
            *_FILE,
            _KERNEL,
            ("draw", "int", "c.draw", "ordinal of the order, from 0"),
            *((name, "float", f"c.{name}", _MEANT[name]) for name in RATIOS),
            ("dram_lines", "float", "c.dram_lines", "bytes that DRAM gave L2 over those of a line"),
        ),
    ),
    "v1_trace_sites": Shape(
        "Hit ratios of a memory trace at one instruction of the source, over all orders.",
        _OF_TRACE.format(table="trace_sites"),
        (
            *_FILE,
            _KERNEL,
            ("site", "text", "c.site", "the instruction, as the trace names it"),
            ("requests", "int", "c.requests", "requests of warps"),
            ("lines_per_request", "float", "c.lines_per_request", "lines of a request, in the mean"),
            ("l1_ratio", "float", "c.l1_ratio", "share of its sectors that L1 had; null where none goes to L1"),
            ("l2_ratio", "float", "c.l2_ratio", "share of those that reached L2 that it had; null where none did"),
        ),
    ),
}
