"""``occupancy-limits`` and ``tiles``: blocks that fit on an SM, and what sizes of a tile give."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("threads", "registers", "shared_bytes", "blocks", "active_threads", "occupancy", "limiter",
           "registers_taken", "registers_for_next", "registers_fit", "shared_for_next", "shared_fit")  # fmt: skip
OF_GRID = ("grid_warps", "waves", "last_wave_filled")
TILES = ("tile", "threads", "warp_lanes_used", "shared_bytes", "blocks_wanted", "blocks", "active_threads", "occupancy",
         "limiter", "demand_gb_per_s", "demand_of_available", "limited_gflop_per_s")  # fmt: skip
MAX_COMBINATIONS = 2_000
DEVICE = Input("device", "Device of: profsvc devices --catalogue", "text", default="H200")
EXACT = Input("allocation", "Steps in which registers and shared memory are handed out", "choice", default="device",
              choices=("device", "none"))  # fmt: skip


def _limits(values: Values) -> tuple[Any, Any]:
    """Return a device and what an SM of it has."""
    import dataclasses

    from profsvc import specs
    from profsvc.formulas.performance.occupancy import Limits

    device = specs.device(values["device"])
    figures = {field.name: getattr(device, field.name) for field in dataclasses.fields(device)}
    kept = Limits._fields if values["allocation"] == "device" else [
        name for name in Limits._fields if name not in Limits._field_defaults
    ]  # fmt: skip
    return device, Limits(**{name: figures[name] for name in kept})


def occupancy(values: Values) -> Answer:
    """Return one row for each combination of threads, registers and shared memory."""
    import numpy as np

    from profsvc.formulas.performance import occupancy as formulas

    device, limits = _limits(values)
    axes = (values["threads"], values["registers"], values["shared"])
    if (count := len(axes[0]) * len(axes[1]) * len(axes[2])) > MAX_COMBINATIONS:
        raise UsageError(f"{count} combinations; at most {MAX_COMBINATIONS} are allowed")
    T, r, s = np.array([*product(*axes)]).T
    found = formulas.occupancy(T, r, s, limits)
    taken = formulas.resource_demand(found.blocks, T, r, limits.registers_per_sm)
    registers = formulas.resource_demand(found.blocks + 1, T, r, limits.registers_per_sm)
    shared = formulas.resource_demand(found.blocks + 1, 1, s, limits.shared_mem_per_sm_bytes)
    names = [formulas.RESOURCES[place] if blocks else "a block does not fit"
             for place, blocks in zip(found.limiter, found.blocks, strict=True)]  # fmt: skip
    cells = [T, r, s, found.blocks, found.active_threads, found.occupancy, names, taken.amount, registers.amount,
             registers.fits, shared.amount, shared.fits]  # fmt: skip
    columns: tuple[str, ...] = COLUMNS
    if values["grid"] is not None:
        columns = COLUMNS + OF_GRID
        stairs = formulas.staircase(values["grid"], device.sms * found.blocks)
        cells += [formulas.warps_resident(values["grid"], T, limits.warp_size), stairs.waves, stairs.utilization]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]
    notes = [
        f"{device.name}: {limits.registers_per_sm:g} registers, {limits.shared_mem_per_sm_bytes:g} bytes of shared "
        f"memory, {limits.max_warps_per_sm:g} warps and {limits.max_blocks_per_sm:g} blocks per SM",
        "registers and shared_bytes for_next: what one block more would take, before rounding to steps",
    ]
    return Answer(rows, columns, notes)


def tiles(values: Values) -> Answer:
    """Return one row for each size of a square tile with a thread per element."""
    import numpy as np

    from profsvc.formulas.performance import occupancy as formulas
    from profsvc.formulas.performance import peak_estimates as peaks

    device, limits = _limits(values)
    tile = np.array(values["tile"])
    T, shared = tile**2, values["arrays"] * tile**2 * values["word"]
    lanes, clock = device.sms * device.fp32_lanes_per_sm, values["clock"] or device.boost_clock_hz
    found = formulas.occupancy(T, values["registers"], shared, limits)
    fma, load = (values[name] / values["instructions"] for name in ("fma", "loads"))
    potential = peaks.potential_throughput([fma], [2.0], lanes * clock).value
    demand = peaks.bandwidth_demand(lanes, load / tile, values["word"], clock).value
    available = device.dram_peak_bytes_per_s
    limited = peaks.bandwidth_limited(potential, demand, available).value
    cells: Mapping[str, Any] = {
        "tile": tile, "threads": T, "shared_bytes": shared, "blocks": found.blocks,
        "warp_lanes_used": T / (limits.warp_size * formulas.warps_resident(1, T, limits.warp_size)),
        "blocks_wanted": np.floor(limits.max_warps_per_sm * limits.warp_size / T),
        "active_threads": found.active_threads, "occupancy": found.occupancy,
        "limiter": [formulas.RESOURCES[place] if blocks else "a block does not fit"
                    for place, blocks in zip(found.limiter, found.blocks, strict=True)],
        "demand_gb_per_s": demand / 1e9, "demand_of_available": demand / available,
        "limited_gflop_per_s": limited / 1e9,
    }  # fmt: skip
    rows = [dict(zip(TILES, row, strict=True)) for row in zip(*(cells[name] for name in TILES), strict=True)]
    whole = float(peaks.bandwidth_demand(lanes, load, values["word"], clock).value) / 1e9
    operands = float(peaks.operand_bandwidth(lanes, values["operands"], values["word"], clock).value) / 1e9
    notes = [
        f"without a tile the loads ask for {whole:.4g} GB/s of {available / 1e9:.4g}; a tile of b divides that by b",
        f"potential of the instructions: {float(potential) / 1e9:.4g} GFLOP/s; operands of all lanes: "
        f"{operands:.4g} GB/s from registers",
        "blocks_wanted: blocks that would fill the thread slots",
    ]
    return Answer(rows, TILES, notes)


CALCULATORS = (
    Calculator(
        name="occupancy-limits",
        title="Occupancy of a device by threads, registers and shared memory",
        question="How many blocks fit on an SM, which resource limits them, and what would one block more need?",
        source="Ryoo2008, sections 4.1 and 4.2",
        inputs=(
            DEVICE,
            Input("threads", "Threads per block", "numbers", default="256", minimum=1, maximum=4096),
            Input("registers", "Registers per thread", "numbers", default="32", minimum=0, maximum=255),
            Input("shared", "Shared memory per block", "numbers", unit="B", default="0", minimum=0, maximum=2**30),
            Input("grid", "Blocks of the grid", "integer", default="", minimum=1),
            EXACT,
        ),
        answer=occupancy,
        examples=(
            Example("Matrix multiplication on the GeForce 8800 GTX: the eleventh register costs a block of three.",
                    {"device": "8800GTX", "registers": "9,10,11", "shared": "2048"}),
            Example("Three blocks of 256 threads are 24 warps.", {"device": "8800GTX", "registers": "10", "grid": "3"}),
        ),
        functions=(
            "performance.occupancy.occupancy", "performance.occupancy.resource_demand",
            "performance.occupancy.warps_resident", "performance.occupancy.staircase",
        ),
        accuracy="equal to the blocks that Nsight Compute prints, for each of 92 launches of an H200",
    ),
    Calculator(
        name="tiles",
        title="Sizes of a tile",
        question="Which sizes of a square tile fit, how full are SMs with them, and how much bandwidth do they leave?",
        source="Ryoo2008, sections 4.1 and 4.2",
        inputs=(
            DEVICE,
            Input("tile", "Edges of the tile, with a thread per element", "numbers", default="4,8,12,16,32", minimum=1,
                  maximum=64),
            Input("registers", "Registers per thread", "integer", default="32", minimum=0, maximum=255),
            Input("arrays", "Tiles that a block holds in shared memory", "integer", default="2", minimum=0,
                  maximum=64),
            Input("word", "Size of an element", "integer", unit="B", default="4", minimum=1, maximum=16),
            Input("instructions", "Instructions of the inner loop", default="8", above=0),
            Input("fma", "Multiply-adds among them", default="1", minimum=0),
            Input("loads", "Loads among them", default="2", minimum=0),
            Input("operands", "Operands that an instruction reads from registers", default="3", minimum=0),
            Input("clock", "Clock; that of the device if not given", unit="Hz", default="", above=0),
            EXACT,
        ),
        answer=tiles,
        examples=(
            Example("Matrix multiplication on the GeForce 8800 GTX: 16 x 16 needs one eighth of the bandwidth.",
                    {"device": "8800GTX", "tile": "4,8,12,16", "registers": "10"}),
        ),
        functions=(
            "performance.occupancy.occupancy", "performance.occupancy.warps_resident",
            "performance.peak_estimates.bandwidth_demand", "performance.peak_estimates.bandwidth_limited",
            "performance.peak_estimates.operand_bandwidth", "performance.peak_estimates.potential_throughput",
        ),
        accuracy="Ryoo2008 measured 46.5 GFLOP/s with tiles of 16, 1.08 times the potential, and 10.6 without, half of "
        "what the bandwidth allows",
    ),
)  # fmt: skip
