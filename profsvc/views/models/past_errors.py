"""The past errors of model times on a device, from predicted and measured times in the store.

Models that agree may all be wrong. Their errors for other kernels on the same device with the same kind of bottleneck
estimate their uncertainty.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from profsvc import store
from profsvc.analysis.models.answer import TIME_MODELS
from profsvc.analysis.potential.advice import LATENCY, MEMORY_UNITS
from profsvc.formulas.numerics.prediction_accuracy import MIN_PAIRS

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = Mapping[str, Any]
RUNS, LAUNCHES = 8, 60
"""Number of newest runs per device, and of longest launches per run."""
ANY_KIND = "any kind"


class Pair(NamedTuple):
    """The predicted and measured time in ns of a kernel with a kind of bottleneck."""

    model: str
    kernel: str
    kind: str | None
    predicted_ns: float
    measured_ns: float


class Record:
    """The error records of models by device, each loaded once."""

    def __init__(self, engine: "Engine") -> None:
        """Use a store."""
        self._engine = engine
        self._pairs: dict[str, Sequence[Pair]] = {}

    def of(self, device: str | None, kernel: str, bound: str | None) -> dict[str, dict[str, Any]]:
        """Return the `records` of models for a kernel and its bottleneck; empty for an unknown device."""
        if device is None:
            return {}
        if device not in self._pairs:
            self._pairs[device] = pairs_of(self._engine, device)
        return records(self._pairs[device], kernel, kind_of(bound))


def kind_of(bound: str | None) -> str | None:
    """Return the kind of the bottleneck of a launch: memory, compute or latency.

    >>> kind_of("dram"), kind_of("fp32"), kind_of("latency"), kind_of(None)
    ('memory', 'compute', 'latency', None)
    """
    if bound is None:
        return None
    return "memory" if bound in MEMORY_UNITS else LATENCY if bound == LATENCY else "compute"


def pairs_of(engine: "Engine", device: str) -> Sequence[Pair]:
    """Return the predicted and measured times of the newest launches on a device.

    They are those of many launches and shown with each, so a service keeps them until its store changes.
    """
    return store.kept_answer(engine, ("past errors", device), lambda: _read_pairs(engine, device))


def _read_pairs(engine: "Engine", device: str) -> tuple[Pair, ...]:
    on_device = [store.Condition("device", "", device)]
    runs = store.list_view(engine, "v1_runs", on_device, columns=["run_id"], order=["-run_id"], limit=RUNS).rows
    found = []
    for run_id in (run["run_id"] for run in runs):
        launches, _ = store.longest_launches(engine, run_id, LAUNCHES)
        timed = {one["launch_id"]: one for one in launches if one["same_as"] is None and one["duration_ns"]}
        bounds = {row["launch_id"]: row["bound"] for row in store.launch_rows(engine, "v1_potential", run_id, [*timed])}
        said = store.launch_rows(engine, "v1_models", run_id, [*timed], quantity="time_ns", form="consistent")
        for row in said:
            if row["model"] in TIME_MODELS and row["value"]:
                one, bound = timed[row["launch_id"]], bounds.get(row["launch_id"])
                found.append(Pair(row["model"], one["kernel"], kind_of(bound), row["value"], one["duration_ns"]))
    return tuple(found)


def records(pairs: Iterable[Pair], kernel: str, kind: str | None) -> dict[str, dict[str, Any]]:
    """Return the record of each model for kernels other than ``kernel``, of the same kind if there are enough.

    ``factor`` is the median error; ``low`` and ``high`` are the 10 and 90 % quantiles of measured / predicted time;
    ``kernels`` is the number of kernels.
    """
    found = {}
    others = [pair for pair in pairs if pair.kernel != kernel]
    for model in TIME_MODELS:
        own = [pair for pair in others if pair.model == model]
        alike = [pair for pair in own if pair.kind == kind]
        for name, chosen in ((kind, alike), (ANY_KIND, own)):
            errors = _by_kernel(chosen)
            if name is not None and len(errors) >= MIN_PAIRS:
                low, high = np.exp(-np.quantile(errors, (0.9, 0.1)))
                factor = float(np.exp(np.median(np.abs(errors))))
                said = {"kind": name, "kernels": len(errors), "factor": factor}
                found[model] = {**said, "low": float(low), "high": float(high)}
                break
    return found


def _by_kernel(pairs: Iterable[Pair]) -> Any:
    """Return the mean of ln(predicted / measured) of each kernel, however often it ran."""
    of: dict[str, list[float]] = {}
    for pair in pairs:
        of.setdefault(pair.kernel, []).append(float(np.log(pair.predicted_ns / pair.measured_ns)))
    return np.array([np.mean(errors) for errors in of.values()])
