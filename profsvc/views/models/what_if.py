"""Predicted time of a launch with other SMs, grid, resources, warps, clock or bandwidth, or on another device."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from profsvc import specs, store
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.models import loaded_launch
from profsvc.analysis.models import what_if as analysis
from profsvc.analysis.models.inputs import MissingCounters, input_names
from profsvc.analysis.models.resources import MAX_REGISTERS, fitting_blocks, limiter_names, resource_margins, whole_sm
from profsvc.analysis.models.unseen_work import unseen_work_reasons
from profsvc.analysis.potential.tensor_work import has_tensor_work
from profsvc.errors import NotFoundError, UsageError
from profsvc.formulas.numerics.flags import flag_names
from profsvc.views.launches.listing import launches_of
from profsvc.views.models.launch_models import known_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.analysis.models.inputs import Inputs

MAX_SCENARIOS = 2_000
"""Maximum number of scenarios."""
COLUMNS = (
    "device", "sms", "blocks", "block_threads", "registers", "shared_bytes", "blocks_per_sm", "occupancy",
    "occupancy_limiter", "warps", "frequency_mhz", "bandwidth_gb_per_s", "expected_us",
    "expected_low_us", "expected_high_us", "limited_by", "peak_us", "mwp_cwp_us", "mwp_cwp_change", "mwp_cwp_bound",
    "mwp_cwp_limiter", "throughput_us", "throughput_change", "throughput_bound", "throughput_limiter", "category",
    "flags",
)  # fmt: skip
UNITS: Mapping[str, Mapping[str, float]] = {
    "sms": {"": 1.0},
    "blocks": {"": 1.0},
    "block_threads": {"": 1.0},
    "registers": {"": 1.0},
    "shared_bytes": {"": 1.0, "b": 1.0, "kb": 1e3, "kib": 1024.0},
    "warps": {"": 1.0},
    "frequency_hz": {"hz": 1.0, "mhz": 1e6, "ghz": 1e9},
    "bandwidth_bytes_per_s": {"": 1e9, "gb/s": 1e9, "tb/s": 1e12},
}
OPTIONS = {"sms": "sms", "blocks": "blocks", "block_threads": "block_size", "registers": "registers",
           "shared_bytes": "shared", "warps": "warps", "frequency_hz": "frequency",
           "bandwidth_bytes_per_s": "bandwidth"}  # fmt: skip
EXAMPLES = {"sms": "66 or x0.5", "blocks": "264 or x0.5", "block_threads": "128 or x0.5", "registers": "40 or +1",
            "shared_bytes": "8192, 8KiB or +1", "warps": "32 or x0.5",
            "frequency_hz": "1200MHz, 1.2GHz or x0.8", "bandwidth_bytes_per_s": "2000 (GB/s), 2TB/s or x1.5",
            }  # fmt: skip
ALLOWED = {"sms": "a whole number of SMs or a factor", "blocks": "a whole number of blocks or a factor",
           "block_threads": "a whole number of threads per block or a factor",
           "registers": "a whole number of registers per thread or a factor",
           "shared_bytes": "a whole number of bytes per block or a factor",
           "warps": "a whole number of warps or a factor",
           "frequency_hz": "a frequency with its unit or a factor", "bandwidth_bytes_per_s": "a bandwidth or a factor",
           }  # fmt: skip
# Default scenarios, one change at a time.
ALONE = {"sms": (0.25, 0.5, 0.75), "warps": (0.5, 2.0), "frequency_hz": (0.6, 0.8),
         "bandwidth_bytes_per_s": (0.5, 1.5, 2.0)}  # fmt: skip
WHOLE = ("sms", "blocks", "block_threads", "registers", "shared_bytes", "warps")
FROM_ZERO = ("shared_bytes",)
NOT_VARIED = "the model does not predict matrix instructions on another machine"


class Base(NamedTuple):
    """A launch: its row, counters, machine and model inputs."""

    launch: dict[str, Any]
    counters: Any
    machine: analysis.Machine
    inputs: "Inputs"
    now: dict[str, Any]


def base_of(engine: "Engine", run: str | int, kernel: str | None) -> Base:
    """Return the longest launch of a run, or of a kernel of it, with model inputs.

    Raise `NotFoundError` if the run has no launches.
    """
    launches, _ = launches_of(engine, run, kernel, 1)
    if not launches:
        raise NotFoundError(f"run {run!r} has no launches; the models need a launch with counters")
    launch = launches[0]
    known = known_of(engine, launch)
    machine, inputs = analysis.Machine(known.figures, known.memory, known.measured), known.inputs()
    return Base(launch, known.counters, machine, inputs, analysis.current_inputs(known.counters, inputs.values))


def what_if(
    engine: "Engine",
    run: str | int,
    kernel: str | None = None,
    axes: Mapping[str, Sequence[str]] | None = None,
    device: str | None = None,
) -> dict[str, Any]:
    """Return one row for a launch now and one per scenario: each combination of the values of ``axes``.

    ``axes`` are texts such as ``66``, ``x0.5`` or ``1200MHz`` for some of `UNITS`; without them, and without another
    ``device``, one axis at a time is changed. The expected time follows from the latency of the warps and the load of
    the units, between full overlap without queues (low) and no overlap (high). A change is that of a published model:
    its time then / its time now - 1. Without stall reasons, the expected times are the measured one with these changes.
    """
    base = base_of(engine, run, kernel)
    parts = None if loaded_launch.missing_inputs(base.now) else loaded_launch.split_launch(base.counters, base.now)
    blind = _unseen(base)
    first = _without(analysis.scenario_answers(base.now), blind)
    missing = _missing(engine, base, first, blind)
    if parts is None and len(missing) == len(analysis.MODELS):
        raise NotFoundError(f"{_named(base)}: both models lack inputs; {missing[0]['reason']}")
    machine, now, counters = base.machine, base.now, base.counters
    notes = [analysis.WORK_HELD_NOTE]
    if device is not None:
        machine, now, counters, said = _moved(base, device)
        notes += said
    asked = {name: _values(name, texts, now) for name, texts in (axes or {}).items() if texts}
    scenarios = _scenarios(asked, now, alone=device is None)
    notes += [analysis.CLOCK_NOTE] if any("frequency_hz" in one for one in scenarios) else []
    notes += [analysis.SPILL_NOTE] if any("registers" in one for one in scenarios) else []
    notes += _beyond(scenarios, now)
    _check_resources(base, scenarios, machine)
    values = analysis.scenario_inputs(counters, now, machine, scenarios)
    _check_blocks(base, values)
    rows = _rows(base, first, values, _without(analysis.scenario_answers(values), blind), device, parts)
    _add_occupancy(rows[:1], base.now, base.machine)
    _add_occupancy(rows[1:], values, machine, 1 if device is None else 0)
    categories = specs.categories()
    return {
        "run": {name: base.launch[name] for name in ("run_id",)},
        "launch": {
            name: base.launch[name] for name in ("launch_id", "launch_index", "kernel", "kernel_short", "device")
        },
        "measured_us": None if base.launch["duration_ns"] is None else base.launch["duration_ns"] / 1e3,
        "rows": rows,
        "resources": resource_margins(now, machine.figures),
        "suggestions": [one for one in analysis.suggestions(base.now, first) if one["model"] not in blind],
        "categories": {
            str(number): {"verdict": categories[number].verdict, "advice": categories[number].advice}
            for number in sorted({row["category"] for row in rows if row["category"]})
        },
        "assumed": _assumed(base),
        "missing": [*_missing_parts(base), *missing],
        "notes": notes,
    }


def _named(base: Base) -> str:
    return f"launch #{base.launch['launch_index']} ({base.launch['kernel_short']})"


def _unseen(base: Base) -> dict[str, str]:
    """Return the models that cannot account for the work of the launch, with reasons."""
    counts = Counts(base.counters)
    found = {model: reason[0] for model, reason in unseen_work_reasons(counts).items() if isinstance(reason[0], str)}
    return (dict.fromkeys(("throughput",), NOT_VARIED) if has_tensor_work(counts).any() else {}) | found


def _without(said: Mapping[str, analysis.Answer], blind: Mapping[str, str]) -> dict[str, analysis.Answer]:
    """Return the results without those of models that cannot account for the work."""
    none = {model: one._replace(time_ns=np.full_like(one.time_ns, np.nan)) for model, one in said.items()}
    return {model: none[model] if model in blind else one for model, one in said.items()}


def _missing(
    engine: "Engine", base: Base, first: Mapping[str, analysis.Answer], blind: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return the models without result, with reasons."""
    found = []
    for model in analysis.MODELS:
        if np.isfinite(first[model].time_ns[0]):
            continue
        if model in blind:
            found.append({"model": model, "reason": blind[model]})
            continue
        stored = store.select(engine, "v1_models", launch_id=base.launch["launch_id"], model=model, value=None)
        reason = next((row["reason"] for row in stored if row["reason"]), "not analysed yet; run: profsvc analyze")
        found.append({"model": model, "reason": reason})
    return found


def _missing_parts(base: Base) -> list[dict[str, str]]:
    """Return which counters the expected time lacks."""
    lacking = loaded_launch.missing_inputs(base.now)
    if not lacking:
        return []
    missing = MissingCounters(base.inputs, np.ones(1, dtype=np.bool_), Counts(base.counters))
    wanted = dict.fromkeys(c for name in lacking for c in missing.of_input(name))
    reason = f"the export lacks {', '.join(wanted)}" if wanted else f"unknown: {', '.join(lacking)}"
    return [{"model": "expected", "reason": reason}]


def _check_resources(base: Base, scenarios: Sequence[Mapping[str, float]], machine: analysis.Machine) -> None:
    """Raise `UsageError` for more registers or shared memory than a thread or block can have."""
    limits = {
        "registers": (MAX_REGISTERS, "registers per thread"),
        "shared_bytes": (machine.figures.get("shared_mem_per_block_max_bytes"), "bytes of shared memory per block"),
    }
    for name, (most, words) in limits.items():
        asked = max((one[name] for one in scenarios if name in one), default=0.0)
        if isinstance(most, int | float) and asked > most:
            raise UsageError(f"{_named(base)}: {asked:.0f} {words} are more than the {most} that the device allows")


def _add_occupancy(rows: Sequence[dict[str, Any]], values: Mapping[str, Any], machine: analysis.Machine,
                   begin: int = 0) -> None:  # fmt: skip
    """Add to rows the blocks that fit on an SM, the share of its warp slots that they take, and what limits them."""
    parts = ("threads_per_block", "registers_per_thread", "shared_bytes_per_block")
    found = fitting_blocks(machine.figures, *(np.atleast_1d(values[name]) for name in parts))
    limits = whole_sm(machine.figures)
    for place, row in enumerate(rows, begin):
        fit = float(values["blocks_per_sm"][place])
        row |= {"registers": _known(values["registers_per_thread"][place]), "blocks_per_sm": _known(fit),
                "shared_bytes": _known(values["shared_bytes_per_block"][place])}  # fmt: skip
        if found is None or limits is None or math.isnan(fit):
            continue
        row["occupancy"] = fit * float(values["warps_per_block"][place]) / limits.max_warps_per_sm
        # What the export says of a launch as it is counts, and may have another limit, such as barriers.
        if fit == float(found.blocks[place]):
            row["occupancy_limiter"] = limiter_names(found)[place]


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _check_blocks(base: Base, values: Mapping[str, Any]) -> None:
    """Raise `UsageError` for blocks that do not fit on an SM, or whose occupancy is unknown."""
    amounts = ("blocks_per_sm", "threads_per_block", "registers_per_thread", "shared_bytes_per_block")
    for fit, threads, registers, shared in zip(*(values[name] for name in amounts), strict=True):
        if np.isnan(fit) and np.isfinite(base.now["blocks_per_sm"]).all():
            raise UsageError(f"{_named(base)}: unknown how many blocks of {threads:g} threads fit on an SM: the "
                             "export lacks registers or shared memory, or the device has no limits")  # fmt: skip
        if fit < 1:
            raise UsageError(f"{_named(base)}: a block of {threads:g} threads does not fit on an SM, with "
                             f"{registers:g} registers per thread and {shared:g} bytes of shared memory")  # fmt: skip


def _moved(base: Base, device: str) -> tuple[analysis.Machine, dict[str, Any], Any, list[str]]:
    """Return the launch on another device of the catalogue, and notes on the assumptions."""
    other = specs.device(device)
    figures = specs.figures(other.name, other.compute_capability)
    memory = specs.memory_table(other.key)
    machine = analysis.Machine(figures, memory, {})
    now = analysis.inputs_on_machine(base.counters, base.now, machine)
    if not now["active_blocks_per_sm"][0] >= 1:
        raise UsageError(f"{_named(base)} cannot run on {other.name}: a block of it does not fit on an SM there")
    said = [f"on {other.name}: specifications of the catalogue, at {now['freq'][0] / 1e6:.0f} MHz, its highest clock"]
    if lacking := [name for name in analysis.DRAM_TIMES if name not in memory]:
        said.append(f"memory latencies unknown ({', '.join(lacking)}): present values in ns assumed")
    if lacking := [name for name, figure in analysis.LATENCIES.items() if figures.get(figure) is None]:
        said.append(f"unit latencies unknown ({', '.join(lacking)}): present values in cycles assumed")
    kept = base.counters.drop(columns=[name for name in analysis.MACHINE_COUNTERS if name in base.counters])
    return machine, now, kept, said


def _values(name: str, texts: Sequence[str], now: Mapping[str, Any]) -> list[float]:
    """Return the values of one axis; ``x0.5`` scales the present value, ``+1`` is added to it."""
    own, found = float(now[analysis.AXES[name]][0]), []
    for text in texts:
        if math.isnan(own) and text.strip()[:1] in ("x", "+"):
            raise UsageError(f"{OPTIONS[name]} {text!r}: the present value is not known; give a number")
        match = re.fullmatch(r"([x+]?)([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([a-z/]*)", text.strip().lower(), re.ASCII)
        sign = match[1] if match else ""
        unit = UNITS[name].get(match[3]) if match and not (sign == "x" and match[3]) else None
        factor = own if sign == "x" and match and not match[3] else unit
        value = float(match[2]) * factor if match and factor is not None else math.nan
        if name in WHOLE and sign == "x" and 0 < value < math.inf:
            value = max(1.0, math.floor(value))
        value += own if sign == "+" else 0.0
        allowed = value >= 0 if name in FROM_ZERO else value > 0
        if not (math.isfinite(value) and allowed) or (name in WHOLE and value != int(value)):
            raise UsageError(f"{OPTIONS[name]} {text!r} must be {ALLOWED[name]}, such as {EXAMPLES[name]}")
        found.append(value)
    return found


def _scenarios(asked: Mapping[str, Sequence[float]], now: Mapping[str, Any], *, alone: bool) -> list[dict[str, float]]:
    if not asked and not alone:
        return []
    if asked:
        count = math.prod(map(len, asked.values()))
        if count > MAX_SCENARIOS:
            raise UsageError(f"{count} scenarios requested; at most {MAX_SCENARIOS} are allowed")
        return [dict(zip(asked, values, strict=True)) for values in product(*asked.values())]
    each = {name: _values(name, [f"x{share}" for share in shares], now) for name, shares in ALONE.items()}
    return [
        {name: value}
        for name, values in each.items()
        for value in dict.fromkeys(values)
        if value != float(now[analysis.AXES[name]][0]) and not (name == "warps" and value > _fitting(now))
    ]


def _fitting(now: Mapping[str, Any]) -> float:
    """Return the warps of a launch that fit on an SM."""
    return float(now["blocks_per_sm"][0] * now["warps_per_block"][0])


def _beyond(scenarios: Sequence[Mapping[str, float]], now: Mapping[str, Any]) -> list[str]:
    """Return warnings about scenarios beyond the device: more warps than fit, more SMs than it has."""
    said = []
    limits = {
        "warps": (_fitting(now), "warps of this launch fit on an SM (registers, shared memory, slots)"),
        "sms": (float(now["sms"][0]), "SMs exist on the device"),
    }
    for name, (most, words) in limits.items():
        if np.isfinite(most) and any(scenario.get(name, 0.0) > most for scenario in scenarios):
            said.append(f"warning: only {most:g} {words}; scenarios beyond are hypothetical")
    return said


def _rows(
    base: Base,
    first: Mapping[str, analysis.Answer],
    values: Mapping[str, Any],
    said: Mapping[str, analysis.Answer],
    device: str | None,
    parts: loaded_launch.LaunchParts | None,
) -> list[dict[str, Any]]:
    """Return one row for now and one per scenario; on another device also one without other changes."""
    measured = base.launch["duration_ns"]
    count = len(said["mwp_cwp"].time_ns)
    now, own = base.now, {one: np.broadcast_to(values[one], (count,)) for one in analysis.AXES.values()}
    known = [None if parts is None else loaded_launch.predict_times(parts, now, one) for one in (now, values)]
    first, said = (_at_peak(one, bound) for one, bound in zip((first, said), known, strict=True))
    rows = [_row(0, base.launch["device"], now, first, first, measured, known[0])]
    if measured is not None:
        rows[0] |= dict.fromkeys(("expected_us", "expected_low_us", "expected_high_us"), measured / 1e3)
    begin = 1 if device is None else 0
    name = base.launch["device"] if device is None else specs.device(device).name
    return rows + [_row(place, name, own, said, first, measured, known[1]) for place in range(begin, count)]


def _at_peak(
    said: Mapping[str, analysis.Answer], expected: loaded_launch.ScenarioTimes | None
) -> Mapping[str, analysis.Answer]:
    """Return results limited by the busiest unit at its peak."""
    if expected is None:
        return said
    least = expected.peak_s * 1e9
    return {model: one._replace(time_ns=np.maximum(one.time_ns, least)) for model, one in said.items()}


def _expected(found: loaded_launch.ScenarioTimes, place: int) -> dict[str, Any]:
    times = {"expected_us": found.time_s, "expected_low_us": found.low_s, "expected_high_us": found.high_s,
             "peak_us": found.peak_s}  # fmt: skip
    row: dict[str, Any] = {name: float(values[place]) * 1e6 for name, values in times.items()}
    return row | {"limited_by": found.bound[place]}


def _row(
    place: int,
    device: str | None,
    values: Mapping[str, Any],
    said: Mapping[str, analysis.Answer],
    first: Mapping[str, analysis.Answer],
    measured: float | None,
    expected: loaded_launch.ScenarioTimes | None,
) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {"device": device, "sms": float(values["sms"][place]), "warps": float(values["N"][place])}
    row |= {"blocks": float(values["blocks"][place]), "block_threads": float(values["threads_per_block"][place])}
    row |= {
        "frequency_mhz": float(values["freq"][place]) / 1e6,
        "bandwidth_gb_per_s": float(values["bandwidth"][place]) / 1e9,
    }
    ratios, flags, bounds = [], 0, analysis.bound_names(said)
    for model, answer in said.items():
        time, own = float(answer.time_ns[place]), float(first[model].time_ns[0])
        if not (math.isfinite(time) and math.isfinite(own)):
            continue
        ratios.append(time / own)
        flags |= int(answer.result.flags[place])
        row |= {f"{model}_us": time / 1e3, f"{model}_change": time / own - 1}
        row |= {f"{model}_bound": bounds[model][place], f"{model}_limiter": answer.limiter[place]}
        if model == "throughput":
            row["category"] = int(answer.result.category[place]) or None
    if ratios and measured:
        row |= {"expected_low_us": measured * min(ratios) / 1e3, "expected_high_us": measured * max(ratios) / 1e3}
    row |= _expected(expected, place) if expected is not None else {}
    return row | {"flags": " ".join(flag_names(flags)) or None}


def _assumed(base: Base) -> list[str]:
    """Return the inputs that are neither in the counters nor in the device tables."""
    names = dict.fromkeys(name for model in analysis.MODELS for name in input_names(model))
    origins = {name: base.inputs.origin(name)[0] for name in names}
    return [f"{name} {float(base.now[name][0]):g}" for name, origin in origins.items() if origin == "assumed"]
