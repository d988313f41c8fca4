"""What a launch would take with other SMs, grids, warps, clock or bandwidth, or on another device."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from profsvc import specs, store
from profsvc.analysis import loaded_launch
from profsvc.analysis import what_if as analysis
from profsvc.analysis.counts import Counts
from profsvc.analysis.model_inputs import inputs_of
from profsvc.analysis.model_inputs import missing as missing_counters
from profsvc.analysis.models.unseen_work import unseen
from profsvc.analysis.tensor import has_tensor_work
from profsvc.errors import NotFoundError, UsageError
from profsvc.formulas.flags import flag_names
from profsvc.views import launches_of
from profsvc.views.models import known_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.analysis.model_inputs import Inputs

OF_LAUNCH = ("run_id", "launch_id", "launch_index", "kernel", "kernel_short", "device")
MOST = 2_000
"""Scenarios of one question at most."""
COLUMNS = (
    "device", "sms", "blocks", "block_threads", "warps", "frequency_mhz", "bandwidth_gb_per_s", "expected_us",
    "expected_low_us", "expected_high_us", "limited_by", "peak_us", "mwp_cwp_us", "mwp_cwp_change", "mwp_cwp_bound",
    "mwp_cwp_limiter", "throughput_us", "throughput_change", "throughput_bound", "throughput_limiter", "category",
    "flags",
)  # fmt: skip
UNITS: Mapping[str, Mapping[str, float]] = {
    "sms": {"": 1.0},
    "blocks": {"": 1.0},
    "block_threads": {"": 1.0},
    "warps": {"": 1.0},
    "frequency_hz": {"hz": 1.0, "mhz": 1e6, "ghz": 1e9},
    "bandwidth_bytes_per_s": {"": 1e9, "gb/s": 1e9, "tb/s": 1e12},
}
OPTIONS = {"sms": "sms", "blocks": "blocks", "block_threads": "block_size", "warps": "warps",
           "frequency_hz": "frequency", "bandwidth_bytes_per_s": "bandwidth"}  # fmt: skip
EXAMPLES = {"sms": "66 or x0.5", "blocks": "264 or x0.5", "block_threads": "128 or x0.5", "warps": "32 or x0.5",
            "frequency_hz": "1200MHz, 1.2GHz or x0.8", "bandwidth_bytes_per_s": "2000 (GB/s), 2TB/s or x1.5",
            }  # fmt: skip
ALLOWED = {"sms": "a whole number of SMs or a share", "blocks": "a whole number of blocks of the grid or a share",
           "block_threads": "a whole number of threads of a block or a share",
           "warps": "a whole number of warps or a share",
           "frequency_hz": "a frequency with its unit or a share", "bandwidth_bytes_per_s": "a bandwidth or a share",
           }  # fmt: skip
# What is asked where nobody says what: one thing at a time.
ALONE = {"sms": (0.25, 0.5, 0.75), "warps": (0.5, 2.0), "frequency_hz": (0.6, 0.8),
         "bandwidth_bytes_per_s": (0.5, 1.5, 2.0)}  # fmt: skip
WHOLE = ("sms", "blocks", "block_threads", "warps")
NOT_VARIED = "the model does not say what becomes of matrix instructions on another machine"


class Base(NamedTuple):
    """A launch as it is: the row of it, what is known of it, its machine and the inputs of the models."""

    launch: dict[str, Any]
    counters: Any
    machine: analysis.Machine
    inputs: "Inputs"
    now: dict[str, Any]


def base_of(engine: "Engine", run: str | int, kernel: str | None) -> Base:
    """Return the longest launch of a run, or of a kernel of it, that the models have inputs for.

    Raise `NotFoundError` with the reason where they have none.
    """
    launches, _ = launches_of(engine, run, kernel, 1)
    if not launches:
        raise NotFoundError(f"run {run!r} has no launches; a model answers about a launch with counters")
    launch = launches[0]
    known = known_of(engine, launch)
    machine = analysis.Machine(known.figures, known.memory, known.measured)
    return Base(launch, known.counters, machine, known.inputs(), analysis.present(known.counters, machine))


def what_if(
    engine: "Engine",
    run: str | int,
    kernel: str | None = None,
    axes: Mapping[str, Sequence[str]] | None = None,
    device: str | None = None,
) -> dict[str, Any]:
    """Answer for a launch as it is and in scenarios: each combination of the values of ``axes``, a row each.

    ``axes`` are texts such as ``66``, ``x0.5`` or ``1200MHz`` for some of `UNITS`; without them, and without another
    ``device``, one thing at a time is changed. The expected time follows from the latency of the launch's warps and
    the load of its units, between full overlap of both without any queue (low) and none (high). A change is that of a
    published model: its time then over its time now, less 1. Where the export lacks the stall reasons, the expected
    times are the measured one with these changes.
    """
    base = base_of(engine, run, kernel)
    parts = None if loaded_launch.lacking(base.now) else loaded_launch.parts_of(base.counters, base.now)
    blind = _unseen(base)
    first = _without(analysis.answers(base.now), blind)
    missing = _missing(engine, base, first, blind)
    if parts is None and len(missing) == len(analysis.MODELS):
        raise NotFoundError(f"{_named(base)}: neither model has all its inputs; {missing[0]['reason']}")
    machine, now, counters = base.machine, base.now, base.counters
    notes = [analysis.HELD]
    if device is not None:
        machine, now, counters, said = _moved(base, device)
        notes += said
    asked = {name: _values(name, texts, now) for name, texts in (axes or {}).items() if texts}
    scenarios = _scenarios(asked, now, alone=device is None)
    notes += [analysis.OF_CLOCK] if any("frequency_hz" in one for one in scenarios) else []
    notes += _beyond(scenarios, now)
    values = analysis.changed(counters, now, machine, scenarios)
    _check_blocks(base, values)
    rows = _rows(base, first, values, _without(analysis.answers(values), blind), device, parts)
    categories = specs.categories()
    return {
        "run": {name: base.launch[name] for name in ("run_id",)},
        "launch": {
            name: base.launch[name] for name in ("launch_id", "launch_index", "kernel", "kernel_short", "device")
        },
        "measured_us": None if base.launch["duration_ns"] is None else base.launch["duration_ns"] / 1e3,
        "rows": rows,
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
    """Return the models that cannot see the work of the launch, each with the reason."""
    counts = Counts(base.counters)
    found = {model: reason[0] for model, reason in unseen(counts).items() if isinstance(reason[0], str)}
    return (dict.fromkeys(("throughput",), NOT_VARIED) if has_tensor_work(counts).any() else {}) | found


def _without(said: Mapping[str, analysis.Answer], blind: Mapping[str, str]) -> dict[str, analysis.Answer]:
    """Return the answers without those of models that cannot see the work."""
    none = {model: one._replace(time_ns=np.full_like(one.time_ns, np.nan)) for model, one in said.items()}
    return {model: none[model] if model in blind else one for model, one in said.items()}


def _missing(
    engine: "Engine", base: Base, first: Mapping[str, analysis.Answer], blind: Mapping[str, str]
) -> list[dict[str, str]]:
    """Name the models without an answer, each with the reason."""
    found = []
    for model in analysis.MODELS:
        if np.isfinite(first[model].time_ns[0]):
            continue
        if model in blind:
            found.append({"model": model, "reason": blind[model]})
            continue
        stored = store.select(engine, "v1_models", launch_id=base.launch["launch_id"], model=model, value=None)
        reason = next((row["reason"] for row in stored if row["reason"]), "the run was not analysed for it; run: "
                      "profsvc analyze")  # fmt: skip
        found.append({"model": model, "reason": reason})
    return found


def _missing_parts(base: Base) -> list[dict[str, str]]:
    """Say which inputs the expected time lacks, and the counters to collect for it."""
    lacking = loaded_launch.lacking(base.now)
    if not lacking:
        return []
    one = np.ones(1, dtype=np.bool_)
    wanted = dict.fromkeys(c for name in lacking for c in missing_counters(name, base.inputs, one, base.counters))
    reason = f"the export has no {', '.join(wanted)}" if wanted else f"unknown: {', '.join(lacking)}"
    return [{"model": "expected", "reason": reason}]


def _check_blocks(base: Base, values: Mapping[str, Any]) -> None:
    """Refuse blocks that do not fit on an SM, or of which nobody knows whether they do."""
    for fit, threads in zip(values["blocks_per_sm"], values["threads_per_block"], strict=True):
        if np.isnan(fit) and np.isfinite(base.now["blocks_per_sm"]).all():
            raise UsageError(f"{_named(base)}: it is not known how many blocks of {threads:g} threads fit: the "
                             "export lacks registers or shared memory, or the device has no limits")  # fmt: skip
        if fit < 1:
            raise UsageError(f"{_named(base)}: a block of {threads:g} threads does not fit on an SM")


def _moved(base: Base, device: str) -> tuple[analysis.Machine, dict[str, Any], Any, list[str]]:
    """Return the launch on another device of the catalogue, and what is assumed about that."""
    other = specs.device(device)
    figures = specs.figures(other.name, other.compute_capability)
    memory = specs.memory_table(other.key)
    machine = analysis.Machine(figures, memory, {})
    now = analysis.moved(base.counters, base.now, machine)
    if not now["active_blocks_per_sm"][0] >= 1:
        raise UsageError(f"{_named(base)} cannot run on {other.name}: a block of it does not fit on an SM there")
    said = [f"on {other.name}: figures of the catalogue, at {now['freq'][0] / 1e6:.0f} MHz, its highest clock"]
    if lacking := [name for name in analysis.OF_DRAM if name not in memory]:
        said.append(f"the latencies of its memory are not known ({', '.join(lacking)}): taken as now, in ns")
    if lacking := [name for name, figure in analysis.LATENCIES.items() if figures.get(figure) is None]:
        said.append(f"latencies of its units are not known ({', '.join(lacking)}): taken as now, in cycles")
    kept = base.counters.drop(columns=[name for name in analysis.OF_MACHINE if name in base.counters])
    return machine, now, kept, said


def _values(name: str, texts: Sequence[str], now: Mapping[str, Any]) -> list[float]:
    """Read the values of one axis; ``x0.5`` is a share of what it is now."""
    own, found = float(now[analysis.AXES[name]][0]), []
    for text in texts:
        match = re.fullmatch(r"(x?)([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([a-z/]*)", text.strip().lower(), re.ASCII)
        unit = UNITS[name].get(match[3]) if match and not (match[1] and match[3]) else None
        factor = own if match and match[1] and not match[3] else unit
        value = float(match[2]) * factor if match and factor is not None else math.nan
        if name in WHOLE and match and match[1] and 0 < value < math.inf:
            value = max(1.0, math.floor(value))
        if not (math.isfinite(value) and value > 0) or (name in WHOLE and value != int(value)):
            raise UsageError(f"{OPTIONS[name]} {text!r} must be {ALLOWED[name]}, such as {EXAMPLES[name]}")
        found.append(value)
    return found


def _scenarios(asked: Mapping[str, Sequence[float]], now: Mapping[str, Any], *, alone: bool) -> list[dict[str, float]]:
    if not asked and not alone:
        return []
    if asked:
        count = math.prod(map(len, asked.values()))
        if count > MOST:
            raise UsageError(f"that are {count} scenarios; ask for {MOST} at most")
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
    """Say which scenarios no such device has: more warps than fit on an SM, more SMs than there are."""
    said = []
    limits = {
        "warps": (_fitting(now), "warps of this launch fit on an SM (registers, shared memory, slots)"),
        "sms": (float(now["sms"][0]), "SMs are on the device"),
    }
    for name, (most, words) in limits.items():
        if np.isfinite(most) and any(scenario.get(name, 0.0) > most for scenario in scenarios):
            said.append(f"beware: only {most:g} {words}; what goes beyond is hypothetical")
    return said


def _rows(
    base: Base,
    first: Mapping[str, analysis.Answer],
    values: Mapping[str, Any],
    said: Mapping[str, analysis.Answer],
    device: str | None,
    parts: loaded_launch.Parts | None,
) -> list[dict[str, Any]]:
    """A row for now and one a scenario; on another device one for it as it is, too."""
    measured = base.launch["duration_ns"]
    count = len(said["mwp_cwp"].time_ns)
    now, own = base.now, {one: np.broadcast_to(values[one], (count,)) for one in analysis.AXES.values()}
    known = [None if parts is None else loaded_launch.predicted(parts, now, one) for one in (now, values)]
    first, said = (_at_peak(one, bound) for one, bound in zip((first, said), known, strict=True))
    rows = [_row(0, base.launch["device"], now, first, first, measured, known[0])]
    if measured is not None:
        rows[0] |= dict.fromkeys(("expected_us", "expected_low_us", "expected_high_us"), measured / 1e3)
    begin = 1 if device is None else 0
    name = base.launch["device"] if device is None else specs.device(device).name
    return rows + [_row(place, name, own, said, first, measured, known[1]) for place in range(begin, count)]


def _at_peak(
    said: Mapping[str, analysis.Answer], expected: loaded_launch.Predicted | None
) -> Mapping[str, analysis.Answer]:
    """Return answers of which none is faster than the busiest unit at its peak."""
    if expected is None:
        return said
    least = expected.peak_s * 1e9
    return {model: one._replace(time_ns=np.maximum(one.time_ns, least)) for model, one in said.items()}


def _expected(found: loaded_launch.Predicted, place: int) -> dict[str, Any]:
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
    expected: loaded_launch.Predicted | None,
) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= {"device": device, "sms": float(values["sms"][place]), "warps": float(values["N"][place])}
    row |= {"blocks": float(values["blocks"][place]), "block_threads": float(values["threads_per_block"][place])}
    row |= {
        "frequency_mhz": float(values["freq"][place]) / 1e6,
        "bandwidth_gb_per_s": float(values["bandwidth"][place]) / 1e9,
    }
    ratios, flags, bounds = [], 0, analysis.bounds(said)
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
    """Name the inputs that no counter and no table of the device says."""
    names = dict.fromkeys(name for model in analysis.MODELS for name in inputs_of(model))
    origins = {name: base.inputs.origin(name)[0] for name in names}
    return [f"{name} {float(base.now[name][0]):g}" for name, origin in origins.items() if origin == "assumed"]
