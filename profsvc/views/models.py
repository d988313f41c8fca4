"""What the performance models say of a launch: side by side, and their inputs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from profsvc import analysis, specs, store
from profsvc.analysis.characterized import of_device
from profsvc.analysis.model_inputs import Inputs, model_inputs
from profsvc.analysis.models.agreement import BOUNDS, TIMES

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = Mapping[str, Any]
INPUTS, AGREEMENT = "inputs", "agreement"


class Known(NamedTuple):
    """What the inputs of the models of a launch come from: its counters, and what is known of its device."""

    counters: pd.DataFrame
    figures: dict[str, object]
    memory: Mapping[str, float] | None
    measured: Mapping[str, float]

    def inputs(self) -> Inputs:
        """Return the inputs."""
        return model_inputs(self.counters, self.figures, self.memory, self.measured)


def inputs_of(
    engine: "Engine", launch: Row, counters: Mapping[str, float] | None = None
) -> tuple[Inputs, dict[str, object]]:
    """Return the inputs of the models of one launch, a row of ``v1_launches``, and the figures of its device.

    They are those that the rows of ``v1_models`` were computed from, as long as the store has not changed since.
    ``counters`` are those of the launch where they are at hand; a kernel of which only means are known needs them.
    """
    known = known_of(engine, launch, counters)
    return known.inputs(), known.figures


def known_of(engine: "Engine", launch: Row, counters: Mapping[str, float] | None = None) -> Known:
    """Return what the inputs of the models of one launch come from; as `inputs_of`."""
    key = launch["launch_id"]
    if counters is None:
        found = store.select(engine, "v1_counter_values", launch_id=key)
        counters = {row["counter"]: row["value"] for row in found}
    named: Any = launch
    if key is not None and launch["device"] is None:
        one = store.table(engine, "v1_launches", launch_id=key)
        named = analysis.lend(one, store.device_attributes(engine, launch["run_id"]))[0].iloc[0]
    place = (named["device"], named["compute_capability"])
    device, capability = (None if pd.isna(text) else str(text) for text in place)
    figures = specs.figures(device, capability)
    measured = of_device(store.characterizations(engine), device, specs.criteria()).sustained
    table = pd.DataFrame({name: [value] for name, value in counters.items()}, index=[0], dtype="float64")
    return Known(table, figures, specs.memory_table(str(figures.get("key"))), measured)


def side_by_side(
    rows: Sequence[Row],
    duration_ns: float | None,
    potential: Row | None,
    device: str | None = None,
    records: Mapping[str, Row] | None = None,
) -> dict[str, Any]:
    """Put the models of one launch that answer the same question beside each other, from its rows of ``v1_models``.

    ``times``, ``bounds`` and ``speedups`` hold a row a model; the ``record`` of a time says how far the model was off
    on other kernels of the device (`model_record.records`), None where too few are known. ``agreement`` says how far
    the models lie apart, which does not measure their errors; ``missing`` names the models without an answer, and why.
    """
    titles = {name: model.title for name, model in specs.models().items()}
    ours = [row for row in rows if row["form"] == "consistent" and row["model"] in titles]
    known = {(row["model"], row["quantity"]): row for row in ours if row["value"] is not None}

    def value(model: str, quantity: str) -> Any:
        return known[model, quantity]["value"] if (model, quantity) in known else None

    known_records = records or {}
    times = [{"model": m, "title": titles[m], "time_ns": t, "ratio": t / duration_ns if duration_ns else None,
              "record": known_records.get(m)}
             for m in TIMES if (t := value(m, "time_ns")) is not None]  # fmt: skip
    bounds = [{"model": m, "title": titles[m], "bound": known[m, q]["label"]}
              for m, q in (("mwp_cwp", "case"), *((m, "bound") for m in BOUNDS)) if (m, q) in known]  # fmt: skip
    speedups = [{"model": "benefit", "title": titles["benefit"], "speedup": value("benefit", "speedup")}]
    if potential and potential["speedup"] is not None:
        speedups.insert(0, {"model": "potential", "title": "Overall potential", "speedup": potential["speedup"]})
    apart = {row["quantity"]: row["label"] or row["value"] for row in ours if row["model"] == AGREEMENT}
    missing = [{"model": row["model"], "title": titles[row["model"]], "reason": row["reason"]}
               for row in ours if row["value"] is None]  # fmt: skip
    assumed = next((row["label"] for row in rows if row["model"] == INPUTS and row["quantity"] == "assumed"), None)
    return {
        "times": times,
        "bounds": bounds,
        "speedups": [row for row in speedups if row["speedup"] is not None],
        "agreement": apart,
        "device": device,
        "missing": missing,
        "assumed": assumed,
    }
