"""``cache-sizes``: hit ratios of a short memory trace over sizes of a cache, and of an L2 behind it."""

from collections.abc import Mapping
from typing import Any

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("cache_kib", "hit_ratio", "p05", "p95", "l2_hit_ratio", "dram_kib")
QUANTILES = (0.05, 0.95)
MAX_REFERENCES = 10_000_000
TRACE = (
    Input("block", "Number of the block", "integer", minimum=0),
    Input("warp", "Number of the warp in the block", "integer", default="0", minimum=0),
    Input("address", "Byte address of the access of a warp", "integer", minimum=0, maximum=2**53),
    Input("store", "1 for a store", "integer", default="0", minimum=0, maximum=1),
    Input("epoch", "Barriers that the warp has passed", "integer", default="0", minimum=0),
)


def cache_sizes(values: Values) -> Answer:
    """Return the hit ratio of each size over random orders of the warps."""
    import numpy as np

    from profsvc.formulas.memory_hierarchy import cache_sim, merge_order

    if (cost := len(values["trace"]) * values["orders"] * len(values["sizes"])) > MAX_REFERENCES:
        raise UsageError(
            f"trace, orders and sizes make {cost} references to simulate; allowed: {MAX_REFERENCES}; give fewer"
        )
    rows, line, ways = values["trace"], int(values["line"]), int(values["ways"])
    sets = [int(size * 1024 // (line * ways)) for size in values["sizes"]]
    if small := [f"{size:g} KiB" for size, number in zip(values["sizes"], sets, strict=True) if number < 1]:
        raise UsageError(f"sizes: {small[0]} is less than one set of {ways} lines of {line} B")
    columns = {
        name: np.array([row[name] for row in rows], dtype=np.int64) for name in (column.name for column in TRACE)
    }
    order = np.lexsort((columns["epoch"], columns["warp"], columns["block"]))
    block, warp, address, store, epoch = (columns[name][order] for name in (column.name for column in TRACE))
    drawn = merge_order(block, warp, epoch, runs=values["orders"], seed=values["seed"])
    lines = (address // line)[drawn]
    found = []
    for size, number in zip(values["sizes"], sets, strict=True):
        hits = cache_sim(lines, number, ways)
        ratio = hits.sum(axis=-1) / hits.shape[-1]
        second = _two_levels(values, (block, warp, address, store, epoch), number)
        found.append((size, hits.sum() / hits.size, *np.quantile(ratio, QUANTILES), *second))
    table = [dict(zip(COLUMNS, row, strict=True)) for row in found]
    curve = np.array([row[:4] for row in found], dtype=float).T
    series = [{"name": "hit ratio", "x": curve[0], "y": curve[1], "low": curve[2], "high": curve[3]}]
    notes = [
        f"{len(rows)} accesses to {np.unique(lines[0]).size} lines in {values['orders']} random orders that keep "
        "each warp's; all blocks at a time on one cache, without timing",
        _enough(found),
    ]
    if not values["l2"]:
        notes.append("no size of an L2 was given")
    figure = {"title": "Hit ratio over the size of the cache", "x": "cache (KiB)", "y": "hit ratio", "log": "x",
              "series": series}  # fmt: skip
    return Answer(table, COLUMNS, notes, figure)


def _enough(found: Any) -> str:
    """Say from which size on more does not help."""
    best = max(row[1] for row in found)
    # Orders that differ by chance must not decide: the interval of a size has to reach the best mean.
    size = min(row[0] for row in found if row[3] >= best)
    return f"hits no longer grow from {size:g} KiB on: {best:.3g}"


def _two_levels(values: Values, columns: tuple[Any, ...], sets: int) -> tuple[float | None, float | None]:
    """Return the hit ratio of an L2 behind the cache, and what DRAM gives [KiB]; None without an L2."""
    import numpy as np

    from profsvc.formulas.memory_hierarchy import LOAD, STORE, Cache, Hierarchy, Trace, hierarchy_mc

    if not values["l2"]:
        return None, None
    block, warp, address, store, epoch = columns
    line, ways = int(values["line"]), int(values["ways"])
    second = Cache(max(1, int(values["l2"] * 1024 // (line * ways))), ways)
    trace = Trace(block, warp, np.arange(block.size), np.zeros_like(block), address, np.where(store, STORE, LOAD),
                  1, epoch)  # fmt: skip
    machine = Hierarchy(1, int(np.unique(block).size), Cache(sets, ways), second, line)
    runs = hierarchy_mc(trace, machine, values["orders"], values["seed"])
    return float(runs.distribution.mean[2]), float(runs.dram_lines.mean()) * line / 1024


def _example() -> Mapping[str, str]:
    lines = [f"{block},{128 * (block * 4 + line)}" for block in range(2) for _ in range(3) for line in range(4)]
    return {"trace": "block,address\n" + "\n".join(lines) + "\n", "sizes": "0.5,1,2", "ways": "4", "l2": "64"}


CALCULATORS = (
    Calculator(
        name="cache-sizes",
        title="Hit ratio over cache sizes",
        question="How large must a cache be for the accesses of a kernel, whatever order its warps run in?",
        source="Kim2012, section 4.2.3, after Baghsorkhi2012",
        inputs=(
            Input("trace", "Accesses of each warp in its order", "table", columns=TRACE),
            Input("sizes", "Sizes of the cache in KiB", "numbers", default="4,8,16,32,64,128,256", above=0),
            Input("line", "Size of a line", "integer", unit="B", default="128", minimum=1, maximum=4096),
            Input("ways", "Lines of a set", "integer", default="16", minimum=1, maximum=1024),
            Input("l2", "Size of an L2 behind it in KiB", default="", above=0),
            Input("orders", "Random orders of the warps", "integer", default="30", minimum=1, maximum=200),
            Input("seed", "Seed of the orders", "integer", default="0", minimum=0, maximum=2**31),
        ),
        answer=cache_sizes,
        examples=(
            Example("Two blocks that each read 512 B three times: 1 KiB holds all, and two of three accesses hit.",
                    _example()),
        ),
        functions=tuple(f"memory_hierarchy.{name}" for name in (
            "cache.cache_sim", "reference_order.merge_order", "simulation.hierarchy_mc")),
        accuracy="20 kernels of an H200 with its caches and its hashing of sets: half within 0.1 points, worst 22 (L1)"
        " and 19 (L2), a stream as large as L1; without hashing not measured",
        has_figure=True,
    ),
)  # fmt: skip
