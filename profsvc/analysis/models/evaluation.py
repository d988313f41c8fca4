"""Every performance model over launches: its answers as rows, and the reason where a model has none.

Launches are computed in blocks that fit the processor caches, all operations on a block at once.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.models import antipatterns, limits, timing
from profsvc.analysis.models.agreement import agreement
from profsvc.analysis.models.answer import Answer
from profsvc.analysis.models.inputs import LAUNCHES_PER_BLOCK, Array, Values, model_inputs, occupancy_limits
from profsvc.analysis.models.rows import answer_rows, missing_answer_rows
from profsvc.analysis.models.unseen_work import unseen_work_reasons
from profsvc.analysis.potential.advice import MEMORY_UNITS
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.tensor_work import has_tensor_work
from profsvc.formulas.performance.speedup import amdahl

MODELS = {
    "mwp_cwp": timing.mwp_cwp, "benefit": timing.benefit, "throughput": timing.throughput,
    "roofline": limits.roofline, "time_bound": limits.time_bound, "ryoo": limits.ryoo,
    "latency_hiding": limits.latency_hiding, "waves": limits.waves,
}  # fmt: skip
# Models of operations, which answer for matrix instructions where their operations were counted.
FLOP_MODELS = ("throughput", "roofline", "time_bound", "ryoo")
UNCOUNTED_MATRIX_OPS = "the export does not count the operations of the matrix instructions, which dominate the work"
UNKNOWN_SM_LIMITS = "the device table has no SM limits of this device"


class Machine(NamedTuple):
    """What the models know of a device: figures of the catalogue, memory of timing.toml, measured shares of peaks."""

    figures: Mapping[str, object]
    memory: Mapping[str, float]
    measured: Mapping[str, float]
    tool: str = "ncu"
    capability: str | None = None


def model_answers(values: Values, figures: Mapping[str, object]) -> dict[str, list[Answer]]:
    """Return what each model says of launches, from their inputs."""
    with np.errstate(all="ignore"):
        found = {name: model(values) for name, model in MODELS.items()}
        held = occupancy_limits(figures, values)
        found["occupancy"] = [Answer("occupancy", np.nan)] if held is None else limits.occupancy(values, held)
    return found


def model_rows(counters: pd.DataFrame, machine: Machine, bounds: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows of all models, those of a block of launches at a time.

    ``counters`` has one row per launch and one column per counter, ``bounds`` the potential of each, in the same order.
    """
    for begin in range(0, len(counters), LAUNCHES_PER_BLOCK):
        part, bound = counters.iloc[begin : begin + LAUNCHES_PER_BLOCK], bounds.iloc[begin : begin + LAUNCHES_PER_BLOCK]
        counts = Counts(part)
        inputs = model_inputs(part, machine.figures, machine.memory, machine.measured)
        found = model_answers(inputs.values, machine.figures)
        if (matrices := has_tensor_work(counts)).any():
            found["roofline"] += limits.tensor_rooflines(counts, peaks(part, machine.figures)[0])
        uncounted = matrices & np.isnan(inputs.values["tensor_ops"])
        refused = dict.fromkeys(
            FLOP_MODELS, np.array([None, UNCOUNTED_MATRIX_OPS], dtype=object)[uncounted.astype(np.int8)]
        )
        for model, said in _withdraw_unseen(found, counts).items():
            refused[model] = np.where(pd.isna(said), refused.get(model, said), said)
        if occupancy_limits(machine.figures, inputs.values) is None:
            refused["occupancy"] = np.full(len(part), UNKNOWN_SM_LIMITS, dtype=object)
        lacking = missing_answer_rows(part, inputs, found, machine.tool, machine.capability, refused)
        potential = bound["speedup"].to_numpy(dtype="float64", na_value=np.nan)
        lost = antipatterns.antiparallel(counts, inputs.values)
        found[antipatterns.MODEL] = lost
        found["agreement"] = agreement(found, inputs.values, _memory_votes(bound["bound"]), potential)
        yield answer_rows(part.index.to_numpy(), inputs, found)
        unknown = antipatterns.missing_rows(part, inputs, lost, machine.tool, machine.capability)
        yield from (rows for rows in (lacking, unknown) if len(rows))


def _withdraw_unseen(found: dict[str, list[Answer]], counts: Counts) -> dict[str, NDArray[np.object_]]:
    """Take away the answers of models for launches whose work they cannot see; return the reasons."""
    said = {}
    for model, reason in unseen_work_reasons(counts).items():
        none = ~pd.isna(reason)
        found[model] = [one._replace(value=np.where(none, np.nan, one.value)) for one in found[model]]
        said[model] = reason
    return said


def _memory_votes(bound: pd.Series) -> Array:
    """Return 1 where a unit of memory bounds a launch, 0 where another does, NaN where no unit is near its peak."""
    unit = bound.to_numpy(dtype=object)
    unknown = pd.isna(unit) | (unit == "latency")
    return np.where(unknown, np.nan, np.isin(unit.astype(str), MEMORY_UNITS).astype(np.float64))


def amdahl_rows(launches: pd.DataFrame, others_ns: float = 0.0) -> pd.DataFrame:
    """Return the application speedup if one kernel alone reached its potential: two rows per kernel, share and speedup.

    ``launches`` has one row per counted launch (kernel, duration_ns, ideal_ns); ``others_ns`` is the time of the rest.
    """
    known = launches[launches["duration_ns"].notna() & launches["ideal_ns"].notna()]
    total = float(launches["duration_ns"].sum()) + others_ns
    sums = known.groupby("kernel", sort=False)[["duration_ns", "ideal_ns"]].sum()
    if sums.empty or not total > 0:
        return pd.DataFrame()
    share = sums["duration_ns"].to_numpy() / total
    speedup = amdahl(share, (sums["ideal_ns"] / sums["duration_ns"]).to_numpy())
    rows = {
        "launch_id": None,
        "kernel": np.tile(sums.index.to_numpy(dtype=object), 2),
        "value": np.concatenate([share, np.asarray(speedup)]),
        "quantity": np.array(["share", "speedup"], dtype=object).repeat(len(sums)),
    }
    return pd.DataFrame(
        {**rows, "model": "amdahl", "unit": "1", "form": "consistent", "flags": 0, "label": None, "reason": None}
    )
