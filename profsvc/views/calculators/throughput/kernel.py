"""``kernel throughput``: performance of a described kernel over warps, SMs and bandwidth, and beside a CPU."""

from typing import Any

from profsvc.errors import UsageError, counted
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("warps", "sms", "bandwidth_gb_per_s", "gflop_per_s", "without_memory_gflop_per_s", "efficiency",
           "requests_in_flight", "verdict", "enough_sms", "enough_warps")  # fmt: skip
MAX_SCENARIOS = 2_000
MIX = {"other": "br_misc", "memory": "mem"}
INSTRUCTIONS = (
    Input("fp", "Scalar floating-point instructions", default="0", minimum=0),
    Input("fp_fused", "Fused multiply-adds", default="0", minimum=0),
    Input("fp_vec", "Scalar instructions that could be vectorized", default="0", minimum=0),
    Input("fp_vec_fused", "Fused multiply-adds that could be vectorized", default="0", minimum=0),
    Input("integer", "Integer instructions", default="0", minimum=0),
    Input("other", "Other instructions that do not access memory", default="0", minimum=0),
    Input("memory", "Memory instructions", default="0", minimum=0),
    Input("ilp", "Instructions of a warp that issue together", default="1", above=0),
    Input("dependence_distance", "Instructions to the nearest that needs the result", default="1", above=0),
    Input("loads", "Places of the loads in the stream of instructions", "numbers", default=""),
    Input("first_uses", "Place where the result of each is used first", "numbers", default=""),
    Input("requests_together", "Instead of both: requests that a warp issues together", default="1", above=0),
    Input("request_bytes", "Bytes of a request of a warp", unit="B", default="128", above=0),
)
PROCESSOR = (
    Input("peak_gflop_per_s", "Peak of all SMs or cores with one operation per instruction", above=0),
    Input("wide_peak_gflop_per_s", "Peak with fused multiply-adds, on a CPU with vectors", above=0),
    Input("clock_mhz", "Clock", unit="MHz", above=0),
    Input("latencies_cycles", "Latency of each level of memory", "numbers", minimum=0),
    Input("shares", "Share of the requests that each level answers", "numbers", minimum=0, maximum=1),
    Input("departure_delay_cycles", "Delay until the next request can depart", default="1", minimum=0),
)
DEVICE = (
    *PROCESSOR,
    Input("bandwidth_gb_per_s", "DRAM bandwidth; several values are compared", "numbers", above=0),
    Input("sms", "SMs that work; several values are compared", "numbers", minimum=1),
    Input("warps", "Warps resident on an SM; several values are compared", "numbers", minimum=1),
    Input("arithmetic_latency_cycles", "Latency of an instruction", default="20", above=0),
)
CPU = (
    *PROCESSOR,
    Input("bandwidth_gb_per_s", "DRAM bandwidth", unit="GB/s", above=0),
    Input("cores", "Cores", minimum=1),
    Input("lanes", "Elements of a vector", default="4", above=0),
    Input("arithmetic_latency_cycles", "Latency of an instruction", default="4", above=0),
    Input("transfer_s_per_gflop", "Time to move the data of 1 GFLOP to the GPU and back", unit="s", default="0",
          minimum=0),
)  # fmt: skip


def throughput_of(values: Values) -> Answer:
    """Return the performance for each combination of warps, SMs and bandwidth."""
    import numpy as np

    from profsvc.formulas.throughput import suggest_cores, suggest_warps, what_if
    from profsvc.specs import categories
    from profsvc.views.calculators.values import section_of

    document = values["description"]
    if unknown := sorted(set(document) - {"kernel", "device", "cpu"}):
        raise UsageError(f"unknown section {unknown[0]!r}; there is kernel, device and cpu")
    kernel, device = section_of(document, "kernel", INSTRUCTIONS), section_of(document, "device", DEVICE)
    strength, notes = _requests_together(kernel)
    sms, warps, bandwidth = (np.array(device[name]) for name in ("sms", "warps", "bandwidth_gb_per_s"))
    if sms.size * warps.size * bandwidth.size > MAX_SCENARIOS:
        raise UsageError(f"[device]: more than {MAX_SCENARIOS} combinations of sms, warps and bandwidth")
    inputs = _inputs(kernel, device, strength, "gpu") | {
        "N": warps.max(),
        "active_sms": sms.max(),
        "bandwidth": bandwidth.max() * 1e9,
    }
    found = what_if(inputs, {"N": warps, "active_sms": sms, "bandwidth": bandwidth * 1e9})
    n, m, b = np.meshgrid(warps, sms, bandwidth, indexing="ij")
    known = categories()
    verdicts = [known[int(number)].verdict if number else "" for number in found.category.ravel()]
    cores = suggest_cores(found.App, found.BW, m, sms.max()).value
    fewer = suggest_warps(found.BW, strength, n, found.InfiN).value
    columns = (n, m, b, found.Perf / 1e9, found.Perf_comp / 1e9, found.EffRatio, found.MWP, verdicts, cores, fewer)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*map(np.ravel, columns), strict=True)]
    notes.append("enough: more use up the bandwidth only")
    if "cpu" in document:
        notes += _split(kernel, section_of(document, "cpu", CPU), strength, float(np.nanmax(found.Perf)))
    return Answer(rows, COLUMNS, notes)


def _requests_together(kernel: dict[str, Any]) -> tuple[float, list[str]]:
    """Return the requests that a warp issues together, counted from the stream of instructions where it is given."""
    from profsvc.formulas.throughput import memory_strength

    loads, uses = kernel["loads"], kernel["first_uses"]
    if loads is None and uses is None:
        return kernel["requests_together"], []
    if loads is None or uses is None or len(loads) != len(uses):
        raise UsageError("[kernel]: loads and first_uses need one number for each load")
    found = memory_strength(loads, uses)
    if found.flags:
        raise UsageError("[kernel] loads: they must go up, and each first use comes after its load")
    requests, all_loads = counted(f"{found.value:g}", "request"), counted(len(loads), "load")
    return float(found.value), [f"{requests} together: {all_loads} in {found.groups:g} batches"]


def _inputs(kernel: dict[str, Any], machine: dict[str, Any], strength: float, processor: str) -> dict[str, Any]:
    """Return the arguments of the model that do not vary."""
    from profsvc.formulas.throughput import effective_latency, instruction_mix

    names = ("fp", "fp_fused", "fp_vec", "fp_vec_fused", "integer", "other", "memory")
    counts = {MIX.get(name, name): kernel[name] for name in names}
    mix = instruction_mix(**counts, processor=processor, lanes=machine.get("lanes", 1.0))
    if len(machine["shares"]) != len(machine["latencies_cycles"]) or abs(sum(machine["shares"]) - 1) > 1e-6:
        raise UsageError("shares: there must be one for each latency, and they must add up to 1")
    return {
        "plain": mix.plain, "wide": mix.wide, "total": mix.total, "mem": kernel["memory"], "ilp": kernel["ilp"],
        "dep": kernel["dependence_distance"], "mstr": strength, "inst_latency": machine["arithmetic_latency_cycles"],
        "peak_plain": machine["peak_gflop_per_s"] * 1e9, "peak_wide": machine["wide_peak_gflop_per_s"] * 1e9,
        "Mem_L": effective_latency(machine["shares"], machine["latencies_cycles"]).value,
        "departure_delay": machine["departure_delay_cycles"], "load_bytes_per_warp": kernel["request_bytes"],
        "freq": machine["clock_mhz"] * 1e6,
    }  # fmt: skip


def _split(kernel: dict[str, Any], cpu: dict[str, Any], strength: float, gpu_flop_per_s: float) -> list[str]:
    """Return the share of the work that lets the GPU and a CPU finish together, in words."""
    from profsvc.formulas.throughput import start_share, throughput

    one_thread = {"N": 1.0, "active_sms": cpu["cores"], "bandwidth": cpu["bandwidth_gb_per_s"] * 1e9, "issue_cycles": 1}
    thread = {**kernel, "request_bytes": kernel["request_bytes"] / 32}
    own = float(throughput(**_inputs(thread, cpu, strength, "cpu") | one_thread).Perf)
    share = float(start_share(gpu_flop_per_s / 1e9, own / 1e9, cpu["transfer_s_per_gflop"]).value)
    what = f"both finish together with {share:.1%} of the work on the GPU" if 0 < share < 1 else (
        f"the {'CPU' if share else 'GPU'} would take less than 2 % of the work: leave it out"
    )  # fmt: skip
    return [f"predicted: {own / 1e9:.4g} GFLOP/s on the CPU, {gpu_flop_per_s / 1e9:.4g} on the GPU; {what}"]


DOUBLED_LOADS = """[kernel]
fp = 50
integer = 6
memory = 4
dependence_distance = 2
loads = [0, 1, 4, 5]
first_uses = [2, 2, 6, 6]

[device]
peak_gflop_per_s = 790
wide_peak_gflop_per_s = 1581
clock_mhz = 1544
bandwidth_gb_per_s = [75, 150, 300]
sms = 16
warps = [8, 24, 48]
latencies_cycles = [30, 200, 450]
shares = [0, 0.5, 0.5]
departure_delay_cycles = 10

[cpu]
peak_gflop_per_s = 38.4
wide_peak_gflop_per_s = 153.6
clock_mhz = 2400
bandwidth_gb_per_s = 25
cores = 16
latencies_cycles = [4, 250]
shares = [0.95, 0.05]
transfer_s_per_gflop = 0.001
"""
CALCULATORS = (
    Calculator(
        name="kernel throughput",
        title="Throughput of a described kernel",
        question="Which performance does a kernel reach that is described by its instructions, what limits it, and "
        "which share of the work should a CPU take?",
        source="Hong2012, chapter V, equations 64 to 93",
        inputs=(Input("description", "Sections kernel, device and, for the split, cpu", "document"),),
        answer=throughput_of,
        examples=(
            Example("A kernel on a GeForce GTX 580 that issues two loads together, as Dmadd and Dotp of the source; L2 "
                    "answers half of the requests.", {"description": DOUBLED_LOADS}),
        ),
        functions=("throughput.instruction_mix", "throughput.memory_strength", "throughput.effective_latency",
                   "throughput.what_if", "throughput.suggest_cores", "throughput.suggest_warps",
                   "throughput.start_share"),
        accuracy="17 % on GPUs, 28 % on CPUs, as printed in the source; for profiled launches see the model throughput",
    ),
)  # fmt: skip
