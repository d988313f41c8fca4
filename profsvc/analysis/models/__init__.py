"""Every performance model over launches: its answers as rows, with their inputs, and the reason where there is none.

``answer``       one quantity of many launches
``timing``       models of the run time: mwp_cwp, benefit, throughput
``limits``       roofline, least time, mix of instructions, occupancy, latency, waves
``agreement``    how far models of the same question lie apart
``unseen_work``  launches whose work a model cannot see
``rows``         answers as rows

Launches are computed in blocks that fit the caches of a processor, all operations on a block at once.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.analysis.counts import Counts
from profsvc.analysis.model_inputs import BLOCK, Array, Values, limits_of, model_inputs
from profsvc.analysis.models import limits, timing
from profsvc.analysis.models.agreement import agreement
from profsvc.analysis.models.answer import Answer
from profsvc.analysis.models.rows import reasons, rows
from profsvc.analysis.models.unseen_work import unseen
from profsvc.analysis.peaks import peaks
from profsvc.analysis.potential import MEMORY
from profsvc.analysis.tensor import has_tensor_work
from profsvc.formulas.speedup import amdahl

__all__ = ["Answer", "Machine", "agreement", "answers", "application", "model_rows"]

MODELS = {
    "mwp_cwp": timing.mwp_cwp, "benefit": timing.benefit, "throughput": timing.throughput,
    "roofline": limits.roofline, "time_bound": limits.time_bound, "ryoo": limits.ryoo,
    "latency_hiding": limits.latency_hiding, "waves": limits.waves,
}  # fmt: skip
# Models of operations, which answer for matrix instructions where their operations were counted.
OF_FLOPS = ("throughput", "roofline", "time_bound", "ryoo")
MATRICES = "the export does not count the operations of the matrix instructions, which are most of the work"
UNKNOWN_SM = "the device table does not tell what an SM of the device holds"


class Machine(NamedTuple):
    """What the models know of a device: figures of the catalogue, memory of timing.toml, measured shares of peaks."""

    figures: Mapping[str, object]
    memory: Mapping[str, float]
    measured: Mapping[str, float]
    tool: str = "ncu"
    capability: str | None = None


def answers(values: Values, figures: Mapping[str, object]) -> dict[str, list[Answer]]:
    """Return what each model says of launches, from their inputs."""
    with np.errstate(all="ignore"):
        found = {name: model(values) for name, model in MODELS.items()}
        held = limits_of(figures, values)
        found["occupancy"] = [Answer("occupancy", np.nan)] if held is None else limits.occupancy(values, held)
    return found


def model_rows(counters: pd.DataFrame, machine: Machine, bounds: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows of all models, those of a block of launches at a time.

    ``counters`` has a row a launch and a column a counter, ``bounds`` the potential of each, in the same order.
    """
    for begin in range(0, len(counters), BLOCK):
        part, bound = counters.iloc[begin : begin + BLOCK], bounds.iloc[begin : begin + BLOCK]
        counts = Counts(part)
        inputs = model_inputs(part, machine.figures, machine.memory, machine.measured)
        found = answers(inputs.values, machine.figures)
        if (matrices := has_tensor_work(counts)).any():
            found["roofline"] += limits.tensor_rooflines(counts, peaks(part, machine.figures)[0])
        uncounted = matrices & np.isnan(inputs.values["tensor_ops"])
        refused = dict.fromkeys(OF_FLOPS, np.array([None, MATRICES], dtype=object)[uncounted.astype(np.int8)])
        for model, said in _blind(found, counts).items():
            refused[model] = np.where(pd.isna(said), refused.get(model, said), said)
        if limits_of(machine.figures, inputs.values) is None:
            refused["occupancy"] = np.full(len(part), UNKNOWN_SM, dtype=object)
        lacking = reasons(part, inputs, found, machine.tool, machine.capability, refused)
        potential = bound["speedup"].to_numpy(dtype="float64", na_value=np.nan)
        found["agreement"] = agreement(found, inputs.values, _voted(bound["bound"]), potential)
        yield rows(part.index.to_numpy(), inputs, found)
        if len(lacking):
            yield lacking


def _blind(found: dict[str, list[Answer]], counts: Counts) -> dict[str, NDArray[np.object_]]:
    """Take away the answers of models for launches whose work they cannot see; return the reasons."""
    said = {}
    for model, reason in unseen(counts).items():
        none = ~pd.isna(reason)
        found[model] = [one._replace(value=np.where(none, np.nan, one.value)) for one in found[model]]
        said[model] = reason
    return said


def _voted(bound: pd.Series) -> Array:
    """Return 1 where a unit of memory bounds a launch, 0 where another does, NaN where none is near its peak."""
    unit = bound.to_numpy(dtype=object)
    unknown = pd.isna(unit) | (unit == "latency")
    return np.where(unknown, np.nan, np.isin(unit.astype(str), MEMORY).astype(np.float64))


def application(launches: pd.DataFrame, others_ns: float = 0.0) -> pd.DataFrame:
    """Return what the run would gain if one kernel alone reached its potential: its share and the speedup, two rows.

    ``launches`` has a row a launch that counts: kernel, duration_ns, ideal_ns; ``others_ns`` is the time of the rest.
    """
    known = launches[launches["duration_ns"].notna() & launches["ideal_ns"].notna()]
    total = float(launches["duration_ns"].sum()) + others_ns
    sums = known.groupby("kernel", sort=False)[["duration_ns", "ideal_ns"]].sum()
    if sums.empty or not total > 0:
        return pd.DataFrame()
    share = sums["duration_ns"].to_numpy() / total
    speedup = amdahl(share, (sums["ideal_ns"] / sums["duration_ns"]).to_numpy())
    parts = []
    for quantity, value in (("share", share), ("speedup", np.asarray(speedup))):
        part = pd.DataFrame({"launch_id": None, "kernel": sums.index, "value": value})
        parts.append(part.assign(model="amdahl", quantity=quantity, unit="1", form="consistent", flags=0))
    return pd.concat(parts, ignore_index=True).assign(label=None, reason=None)
