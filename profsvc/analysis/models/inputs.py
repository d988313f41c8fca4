"""What the performance models take of launches, and where each number comes from.

The table `profsvc.specs.models.inputs` holds an expression an input, its alternatives best first. An alternative counts
for the launches for which it gives a number; the next one for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profsvc import specs
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.potential.peaks import peaks
from profsvc.analysis.potential.tensor_work import has_tensor_work, tensor_operations, tensor_time
from profsvc.formulas.performance.occupancy import Limits, occupancy
from profsvc.specs.metrics.expression import Alternative
from profsvc.tables.on_demand import pd

Array = NDArray[np.float64]
Values = Mapping[str, Any]
LAUNCHES_PER_BLOCK = 1_024
"""Launches whose inputs, answers and rows are made together: each has about 130 rows, which have to fit the caches."""

# Inputs that a formula takes under other names.
ALIASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "benefit": {"n_sync": ("sync_insts",)},
    "machine": {
        "Mem_LD": ("DRAM_lat",), "avg_inst_lat": ("avg_inst_lat", "FP_lat"), "bandwidth": ("mem_peak_bandwidth",),
        "warp": ("warp_size",),
    },
    "mwp_cwp": {"round_trip": ("Mem_LD",), "request_bytes": ("load_bytes_per_warp",)},
    "throughput": {
        "slots": ("total",), "wide_slots": ("wide",), "mem_insts": ("mem",), "avg_inst_lat": ("inst_latency",),
        "request_bytes": ("load_bytes_per_warp",),
    },
}  # fmt: skip


class Inputs(NamedTuple):
    """Inputs of launches: one number, or one per launch, NaN where missing, and which alternative gave it.

    ``used`` holds the place of the alternative in the table, -1 where none gave a number.
    """

    launches: int
    values: dict[str, Array]
    used: dict[str, NDArray[np.int8]]

    def origin(self, name: str) -> NDArray[np.object_]:
        """Where the value of an input comes from, of each launch: one of ``specs.ORIGINS``, None where missing."""
        return self._each(name, specs.model_inputs()[name].origins)

    def text(self, name: str) -> NDArray[np.object_]:
        """Return the expression that gave the value of an input, of each launch; None where it is missing."""
        return self._each(name, tuple(a.text for a in specs.model_inputs()[name].expression.alternatives))

    def _each(self, name: str, texts: tuple[str, ...]) -> NDArray[np.object_]:
        used = np.broadcast_to(self.used[name], self.launches)
        return np.array([*texts, None], dtype=object)[used]


@cache
def input_names(model: str) -> tuple[str, ...]:
    """Return the inputs that a model takes, in the order of the table.

    >>> input_names("occupancy")
    ('threads_per_block', 'registers_per_thread', 'shared_bytes_per_block')
    """
    return tuple(name for name, one in specs.model_inputs().items() if model in one.models)


def formula_arguments(model: str, values: Values) -> dict[str, Any]:
    """Return the arguments of the formula of a model out of inputs; of ``machine`` those of `benefit.Machine`.

    >>> values = {"threads_per_block": 256, "registers_per_thread": 16, "shared_bytes_per_block": 0}
    >>> formula_arguments("occupancy", values)
    {'threads_per_block': 256, 'registers_per_thread': 16, 'shared_bytes_per_block': 0}
    """
    other = ALIASES.get(model, {})
    return {argument: values[name] for name in input_names(model) for argument in other.get(name, (name,))}


def model_inputs(
    counters: pd.DataFrame,
    figures: Mapping[str, object],
    memory: Mapping[str, float] | None = None,
    measured: Mapping[str, float] | None = None,
    given: Values | None = None,
) -> Inputs:
    """Return the inputs of the models of launches on one device.

    ``counters`` has one row per launch and one column per counter. ``figures`` are the catalogue values of the device,
    ``memory`` is its row of timing.toml; ``measured`` are the measured shares of the peaks of its units and other
    figures of its characterization.
    """
    known = _device_inputs(figures, memory or {}, measured or {})
    counts = Counts(counters)
    known |= _tensor_inputs(counters, counts, figures)
    table: dict[str, Array] = {}
    used: dict[str, NDArray[np.int8]] = {}
    with np.errstate(all="ignore"):
        for name, one in specs.model_inputs().items():
            if given and name in given:
                known[name] = table[name] = np.asarray(given[name], dtype=np.float64)
                used[name] = np.asarray(-1, dtype=np.int8)
                continue
            found, place = np.asarray(np.nan), np.asarray(-1, dtype=np.int8)
            for index, alternative in enumerate(one.expression.alternatives):
                _resolve_names(alternative, known, counts, figures)
                if any(part not in known for part in alternative.names):
                    continue
                value = alternative.node.array(known)
                open_ = np.isnan(found)
                place = np.where(open_ & ~np.isnan(value), np.int8(index), place)
                found = np.where(open_, value, found)
                if not np.isnan(found).any():
                    break
            known[name] = table[name] = found
            used[name] = place
    return Inputs(len(counters), table, used)


def _tensor_inputs(counters: pd.DataFrame, counts: Counts, figures: Mapping[str, object]) -> dict[str, Array]:
    """Return the work of the tensor pipe and its least time, 0 of launches without; NaN where it was not counted."""
    matrices = has_tensor_work(counts)
    if not matrices.any():
        return {"tensor.ops": np.asarray(0.0), "tensor.seconds": np.asarray(0.0)}
    seconds = tensor_time(counts, peaks(counters, figures)[0])[0]
    done = {"tensor.ops": np.where(np.isnan(seconds), np.nan, tensor_operations(counts)), "tensor.seconds": seconds}
    return {name: np.where(matrices, value, 0.0) for name, value in done.items()}


def _device_inputs(
    figures: Mapping[str, object], memory: Mapping[str, float], measured: Mapping[str, float]
) -> dict[str, Array]:
    """Return what is known of the device, under the names that expressions use."""
    parts: tuple[tuple[str, Mapping[str, object]], ...] = (
        ("device", figures), ("memory", memory), ("measured", measured),
    )  # fmt: skip
    return {
        f"{kind}.{name}": np.asarray(float(value))
        for kind, part in parts
        for name, value in part.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _resolve_names(
    alternative: Alternative, known: dict[str, Array], counts: Counts, figures: Mapping[str, object]
) -> None:
    """Put what an alternative needs among what is known: counters, and the blocks that fit on an SM."""
    for name in alternative.names:
        if name not in known and name.startswith("@") and counts.has(name[1:]):
            known[name] = counts[name[1:]]
        elif name == "occupancy.blocks" and name not in known and (limits := occupancy_limits(figures, known)):
            shape = (known["threads_per_block"], known["registers_per_thread"], known["shared_bytes_per_block"])
            known[name] = occupancy(*shape, limits).blocks


def occupancy_limits(figures: Mapping[str, object], values: Values) -> Limits | None:
    """Return what an SM of the device holds, with the shared memory set aside for the launches; None if unknown."""
    found: dict[str, Any] = {name: figures[name] for name in Limits._fields if name in figures}
    found["shared_mem_per_sm_bytes"] = values["shared_mem_config_bytes"]
    return Limits(**found) if set(Limits._field_defaults) | set(found) == set(Limits._fields) else None


class MissingCounters:
    """The counters without which inputs have no value for some launches; what one input tells serves the next.

    Of several ways to an input that counts which lacks the fewest counters. Where none lacks a counter the value is
    undefined, or the device unknown.
    """

    def __init__(self, inputs: Inputs, lacking: NDArray[np.bool_], counts: Counts) -> None:
        """Take the inputs and counters of launches, and which of the launches are asked about."""
        self._inputs, self._lacking, self._counts = inputs, lacking, counts
        self._unknown: dict[str, bool] = {}
        self._ways: dict[str, list[str]] = {}

    def is_unknown(self, part: str) -> bool:
        """Tell whether an input, or a counter behind ``@``, is missing in one of the launches."""
        if part not in self._unknown:
            given = (
                self._counts[part[1:]] if part.startswith("@") else self._inputs.values.get(part, np.asarray(np.nan))
            )
            self._unknown[part] = bool(np.isnan(np.broadcast_to(given, self._lacking.shape)[self._lacking]).any())
        return self._unknown[part]

    def of_input(self, name: str) -> list[str]:
        """Return the counters without which an input has no value, in the order of its expression."""
        if name not in self._ways:
            ways = []
            for alternative in specs.model_inputs()[name].expression.alternatives:
                parts = [part for part in alternative.names if self.is_unknown(part)]
                own = [part[1:] for part in parts if part.startswith("@")]
                deeper = [c for part in parts if part in self._inputs.values for c in self.of_input(part)]
                ways.append(list(dict.fromkeys([*own, *deeper])))
            self._ways[name] = min((way for way in ways if way), key=len, default=[])
        return self._ways[name]
