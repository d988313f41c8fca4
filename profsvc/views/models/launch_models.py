"""The results of the performance models of a launch side by side, and their inputs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from profsvc import analysis, specs, store
from profsvc.analysis.models.answer import BOUND_MODELS, TIME_MODELS

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy import Engine

    from profsvc.analysis.models.inputs import Inputs

Row = Mapping[str, Any]
INPUTS, AGREEMENT = "inputs", "agreement"
# Each pattern that is not known is shown with its reason in the table of patterns.
PATTERNS = "antiparallel"


class Known(NamedTuple):
    """The sources of the model inputs of a launch: its counters and the data of its device."""

    counters: "pd.DataFrame"
    figures: dict[str, object]
    memory: Mapping[str, float] | None
    measured: Mapping[str, float]

    def inputs(self) -> "Inputs":
        """Return the inputs."""
        from profsvc.analysis.models.inputs import model_inputs

        return model_inputs(self.counters, self.figures, self.memory, self.measured)


def inputs_of(
    engine: "Engine", launch: Row, counters: Mapping[str, float] | None = None
) -> "tuple[Inputs, dict[str, object]]":
    """Return the inputs of the models of one launch, a row of ``v1_launches``, and the figures of its device.

    They equal those of the rows of ``v1_models`` unless the store has changed. ``counters`` are those of the launch if
    already loaded; required for a kernel with averages only.
    """
    known = known_of(engine, launch, counters)
    return known.inputs(), known.figures


def known_of(engine: "Engine", launch: Row, counters: Mapping[str, float] | None = None) -> Known:
    """Return the sources of the model inputs of one launch; see `inputs_of`. What it needs is imported for it alone."""
    import pandas as pd

    from profsvc.analysis.launches.characterization import device_characterization

    key = launch["launch_id"]
    if counters is None:
        found = store.select(engine, "v1_counter_values", launch_id=key)
        counters = {row["counter"]: row["value"] for row in found}
    named: Any = launch
    if key is not None and launch["device"] is None:
        one = store.table(engine, "v1_launches", launch_id=key)
        named = analysis.fill_from_session(one, store.device_attributes(engine, launch["run_id"]))[0].iloc[0]
    place = (named["device"], named["compute_capability"])
    device, capability = (None if pd.isna(text) else str(text) for text in place)
    figures = specs.figures(device, capability)
    measured = device_characterization(store.characterizations(engine), device, specs.criteria()).measured
    table = pd.DataFrame([list(counters.values())], columns=list(counters), dtype="float64")
    return Known(table, figures, specs.memory_table(str(figures.get("key"))), measured)


def side_by_side(
    rows: Sequence[Row],
    duration_ns: float | None,
    potential: Row | None,
    device: str | None = None,
    records: Mapping[str, Row] | None = None,
) -> dict[str, Any]:
    """Return the models of one launch grouped by their result, from its rows of ``v1_models``.

    ``times``, ``bounds`` and ``speedups`` have one row per model. The ``record`` of a time is its error for other
    kernels on the device (`model_record.records`), None if there are too few. ``agreement`` is the spread of the
    models, which is not their error. ``missing`` lists models without result, with reasons.
    """
    titles = {name: model.title for name, model in specs.models().items()}
    ours = [row for row in rows if row["form"] == "consistent" and row["model"] in titles]
    known = {(row["model"], row["quantity"]): row for row in ours if row["value"] is not None}

    def value(model: str, quantity: str) -> Any:
        return known[model, quantity]["value"] if (model, quantity) in known else None

    known_records = records or {}
    times = [
        {
            "model": m,
            "title": titles[m],
            "time_ns": t,
            "ratio": t / duration_ns if duration_ns else None,
            "record": known_records.get(m),
        }
        for m in TIME_MODELS
        if (t := value(m, "time_ns")) is not None
    ]
    bounds = [
        {"model": m, "title": titles[m], "bound": known[m, q]["label"]}
        for m, q in (("mwp_cwp", "case"), *((m, "bound") for m in BOUND_MODELS))
        if (m, q) in known
    ]
    speedups = [{"model": "benefit", "title": titles["benefit"], "speedup": value("benefit", "speedup")}]
    if potential and potential["speedup"] is not None:
        speedups.insert(0, {"model": "potential", "title": "Overall potential", "speedup": potential["speedup"]})
    apart = {row["quantity"]: row["label"] or row["value"] for row in ours if row["model"] == AGREEMENT}
    missing = [
        {"model": row["model"], "title": titles[row["model"]], "reason": row["reason"]}
        for row in ours
        if row["value"] is None and row["model"] != PATTERNS
    ]
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
