"""The derivation of model results: inputs, and the counters behind them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc import specs, store
from profsvc.analysis.models.inputs import input_names as taken_by
from profsvc.analysis.models.rows import INPUT_MODELS
from profsvc.views.models.index import functions_of, model_rows
from profsvc.views.models.launch_models import inputs_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

# The model whose results are for all launches of a kernel.
OF_KERNELS = "amdahl"
PREFIX, KIND = "model.", "model"


def entries() -> dict[str, dict[str, Any]]:
    """Return each model as an entry that can be explained."""
    return {
        name: {
            "name": name,
            "title": model.title,
            "formula": model.formula,
            "reference": model.reference,
            "section": model.section,
            "hint": model.hint,
            "counters": counters_of(name),
        }
        for name, model in specs.models().items()
    }


def explain_model(name: str) -> dict[str, Any] | None:
    """Explain ``model.NAME``, any model of the list; None for other names."""
    row = next((row for row in model_rows() if f"{PREFIX}{row['name']}" == name), None)
    if row is None:
        return None
    functions = ", ".join(f"profsvc.formulas.{one}" for one in functions_of(row["name"]))
    return {
        "name": name,
        "kind": KIND,
        "meaning": row["title"],
        "formula": f"computed by {functions}",
        "source": row["source"],
        "hint": f"{row['question']} {row['command']}. Accuracy: {row['accuracy']}.",
        "counters": [],
    }


def chain(name: str) -> list[str]:
    """Return the inputs of a model, or an input, and all inputs behind them, each once.

    >>> chain("issue_cycles")
    ['issue_cycles', 'warp', 'SIMD_width', 'sms', 'freq']
    """
    known, found = specs.model_inputs(), dict[str, None]()
    waiting = [name] if name in known else [one for part in INPUT_MODELS.get(name, (name,)) for one in taken_by(part)]
    while waiting:
        one = waiting.pop(0)
        if one not in found:
            found[one] = None
            behind = [part for way in known[one].expression.alternatives for part in way.names]
            waiting += [part for part in behind if part in known]
    return list(found)


def counters_of(name: str) -> list[str]:
    """Return the counters that a model or an input may be computed from."""
    known = specs.model_inputs()
    names = [part for one in chain(name) for way in known[one].expression.alternatives for part in way.names]
    return list(dict.fromkeys(part[1:] for part in names if part.startswith("@")))


def explain_input(name: str) -> dict[str, Any]:
    """Explain an input of models."""
    one = specs.model_inputs()[name]
    return {
        "name": name,
        "kind": "input",
        "meaning": one.meaning,
        "unit": one.unit,
        "formula": one.expression.text,
        "source": one.source,
        "hint": f"input of {', '.join(one.models)}" if one.models else "",
        "counters": counters_of(name),
    }


def answers(engine: "Engine", index: int | str, model: str, **only: Any) -> list[dict[str, Any]]:
    """Return one row per quantity of a model for the launch or kernel selected by ``only``."""
    title = specs.models()[model].title
    if model == OF_KERNELS and "launch_id" in only and only["launch_id"] is not None:
        launch = store.select(engine, "v1_launches", launch_id=only["launch_id"])[0]
        only = {"run_id": launch["run_id"], "launch_id": None, "kernel": launch["kernel"]}
    return [
        {
            "launch": index,
            "name": f"{model}.{row['quantity']}",
            "value": row["value"],
            "unit": row["unit"],
            "from": row["reason"] or ", ".join(filter(None, (title, row["form"], row["label"]))),
        }
        for row in store.select(engine, "v1_models", model=model, **only)
    ]


def walked(
    engine: "Engine", launch: Mapping[str, Any], view: Mapping[str, Any], counters: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return one row per input behind a model or an input: its value for the launch, and its origin.

    Empty for anything else. ``counters`` are those of the launch, each with its value.
    """
    if view["name"] not in specs.models() and view["kind"] != "input":
        return []
    inputs, _ = inputs_of(engine, launch, {name: row["value"] for name, row in counters.items()})
    rows = []
    for one in chain(view["name"]):
        value = float(np.broadcast_to(inputs.values[one], 1)[0])
        origin, text = inputs.origin(one)[0], inputs.text(one)[0]
        source = specs.model_inputs()[one].source if origin == "assumed" else ""
        came = "unknown: no counter in the export" if origin is None else f"{origin}: {text}"
        if source:
            came = source if "assumed" in source else f"{came} ({source})"
        rows.append(
            {
                "launch": launch["launch_index"],
                "name": one,
                "value": None if np.isnan(value) else value,
                "unit": specs.model_inputs()[one].unit,
                "from": came,
            }
        )
    return rows
