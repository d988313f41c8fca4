"""``instruction-mix`` and ``elements``: rates that instructions, operations and bytes allow."""

from typing import Any

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import QUANTITIES, Answer, Calculator, Example, Input, Values, quantity

ELEMENTS = ("operations", "bytes", "intensity", "memory_g_per_s", "compute_g_per_s", "rate_g_per_s", "bound")
DEVICE = Input("device", "Device of: profsvc devices --catalogue; figures below replace its own", "text", default="")
GIGA = 1e9


def _figures(values: Values, names: dict[str, str]) -> tuple[dict[str, float], list[str]]:
    """Return the figures of a device, and those given in their place; raise `UsageError` where one is missing."""
    known: dict[str, Any] = {}
    notes = []
    if values["device"]:
        from profsvc import specs

        device = specs.device(values["device"])
        known = {"lanes": device.sms * device.fp32_lanes_per_sm, "clock": device.boost_clock_hz,
                 "bandwidth": device.dram_peak_bytes_per_s, "rate": device.fp32_peak_flop_per_s}  # fmt: skip
        notes.append(f"figures of {device.name}, at its highest clock and theoretical bandwidth")
    known |= {name: values[name] for name in names if values[name] is not None}
    if missing := [name for name in names if name not in known]:
        raise UsageError(f"{', '.join(missing)}: missing; give each, or a device of: profsvc devices --catalogue")
    return known, notes


def instruction_mix(values: Values) -> Answer:
    """Return the rates of a loop whose instructions issue without a pause."""
    from profsvc.formulas.performance import peak_estimates as formulas
    from profsvc.formulas.performance.roofline import peak_rate

    known, notes = _figures(values, {"lanes": "", "clock": "", "bandwidth": ""})
    lanes, clock, available = known["lanes"], known["clock"], known["bandwidth"]
    total = values["instructions"]
    shares = [values["fma"] / total, values["other"] / total]
    if sum(shares) + values["loads"] / total > 1:
        raise UsageError(f"fma, other and loads are more than the {total:g} instructions of the loop")
    potential = float(formulas.potential_throughput(shares, [2.0, 1.0], lanes * clock).value)
    demand = float(formulas.bandwidth_demand(lanes, values["loads"] / total, values["bytes"], clock).value)
    demand /= values["reuse"]
    limited = float(formulas.bandwidth_limited(potential, demand, available).value)
    operands = float(formulas.operand_bandwidth(lanes, values["operands"], values["bytes"], clock).value)
    rows = [
        quantity("peak", float(peak_rate(lanes, clock, values["operations"]).value) / GIGA, "GFLOP/s",
                 f"all lanes, {values['operations']:g} operations a clock"),
        quantity("issue_rate", float(peak_rate(lanes, clock, 1.0).value) / GIGA, "G/s", "instructions of all lanes"),
        quantity("potential", potential / GIGA, "GFLOP/s", "instructions of this mix without a pause"),
        quantity("demand", demand / GIGA, "GB/s", "bandwidth that the loads then ask for"),
        quantity("demand_of_available", demand / available, "1", f"of {available / GIGA:.4g} GB/s"),
        quantity("limited", limited / GIGA, "GFLOP/s", "potential with the bandwidth that is there"),
        quantity("operand_bandwidth", operands / GIGA, "GB/s", "bandwidth that lanes ask their registers for"),
    ]  # fmt: skip
    if values["measured"] is not None:
        share = values["measured"] * GIGA / limited
        rows.append(quantity("measured_of_limited", share, "1", "may pass 1: the mix is that of the source code"))
    return Answer(rows, QUANTITIES, notes)


def elements(values: Values) -> Answer:
    """Return the roofline of each version in elements per second."""
    import numpy as np

    from profsvc.formulas.performance.roofline import pixel_roofline

    known, notes = _figures(values, {"rate": "", "bandwidth": ""})
    operations, moved = np.array(values["operations"]), np.array(values["bytes"])
    if len(moved) not in (1, len(operations)):
        raise UsageError(f"bytes has {len(moved)} numbers and operations {len(operations)}; give one, or as many")
    r = pixel_roofline(operations, moved, known["rate"], known["bandwidth"])
    bound = np.where(r.memory <= r.compute, "memory", "computation")
    cells = (operations, np.broadcast_to(moved, operations.shape), r.intensity, r.memory / GIGA, r.compute / GIGA,
             r.rate / GIGA, bound)  # fmt: skip
    rows = [dict(zip(ELEMENTS, row, strict=True)) for row in zip(*cells, strict=True)]
    return Answer(rows, ELEMENTS, [*notes, "rates are billions of elements per second"])


LANES = Input("lanes", "Lanes of the device", default="", above=0)
CLOCK = Input("clock", "Clock of the lanes", unit="Hz", default="", above=0)
BANDWIDTH = Input("bandwidth", "Bandwidth of the memory", unit="B/s", default="", above=0)
GTX = {"lanes": "128", "clock": "1.35 GHz", "bandwidth": "86.4 GB/s"}
CALCULATORS = (
    Calculator(
        name="instruction-mix",
        title="Potential of a mix of instructions",
        question="Which rate can a loop reach by its instructions, and which bandwidth would it need for that?",
        source="Ryoo2008, sections 4.1 to 4.3",
        inputs=(
            DEVICE, LANES, CLOCK, BANDWIDTH,
            Input("instructions", "Instructions of the loop", default="8", above=0),
            Input("fma", "Multiply-adds among them", default="1", minimum=0),
            Input("other", "Other floating-point instructions among them", default="0", minimum=0),
            Input("loads", "Loads from global memory among them", default="2", minimum=0),
            Input("bytes", "Bytes that a thread loads at a time", unit="B", default="4", above=0),
            Input("reuse", "Threads that share a loaded element, as with tiles", default="1", minimum=1),
            Input("operands", "Operands that an instruction reads from registers", default="3", minimum=0),
            Input("operations", "Operations of a lane and clock that the peak counts", default="2", above=0),
            Input("measured", "Measured rate in GFLOP/s", default="", above=0),
        ),
        answer=instruction_mix,
        examples=(
            Example("Matrix multiplication from global memory: 43.2 GFLOP/s would need 173 GB/s.",
                    {**GTX, "measured": "10.58"}),
            Example("Tiled and unrolled: 16 of 59 instructions are multiply-adds.",
                    {**GTX, "instructions": "59", "fma": "16", "loads": "2", "reuse": "16", "measured": "91.14"}),
        ),
        functions=(
            "performance.roofline.peak_rate", "performance.peak_estimates.potential_throughput",
            "performance.peak_estimates.bandwidth_demand", "performance.peak_estimates.bandwidth_limited",
            "performance.peak_estimates.operand_bandwidth",
        ),
        accuracy="Ryoo2008 measured 0.49, 1.08 and 0.97 of the estimate for three versions",
    ),
    Calculator(
        name="elements",
        title="Roofline in elements per second",
        question="How many elements, such as pixels, can be processed per second?",
        source="Lemeire2017, fixed pattern noise",
        inputs=(
            DEVICE,
            Input("operations", "Operations per element, of one or several versions", "numbers", minimum=0),
            Input("bytes", "Bytes moved per element", "numbers", minimum=0),
            Input("rate", "Rate of these operations", unit="op/s", default="", above=0),
            BANDWIDTH,
        ),
        answer=elements,
        examples=(
            Example("Fixed pattern noise with 1 and 4 pixels per thread: both are bound by memory, at 23 Gpixel/s.",
                    {"operations": "9,6", "bytes": "5", "rate": "500 Gop/s", "bandwidth": "115 GB/s"}),
        ),
        functions=("performance.roofline.pixel_roofline",),
        accuracy="a roofline: 34 launches of an H200 took 1.07 to 634 times its time (median 5.2), none less",
    ),
)  # fmt: skip
