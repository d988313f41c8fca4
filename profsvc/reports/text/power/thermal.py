"""The temperature of a board over a plan of loads as text for a terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from profsvc.reports.rows import cell, render, visible
from profsvc.reports.text.cells import middle
from profsvc.reports.text.models.values import figure

CHECKS = {
    "window": "load", "power_w": "W", "duration_s": "s", "highest_temperature_c": "\u00b0C measured",
    "predicted_c": "\u00b0C predicted", "error_c": "error \u00b0C",
}  # fmt: skip


def thermal(view: Mapping[str, Any], width: int | None = None) -> str:
    """Return the answers to a plan, the model behind them, and how it predicts the loads of the run."""
    return "\n".join(visible(line) for line in _lines(view, width)) + "\n"


def _lines(view: Mapping[str, Any], width: int | None) -> Iterable[str]:
    run, plan, model = view["run"], view["plan"], view["model"]
    loads = zip(plan["load_w"], plan["duration_s"], strict=True)
    words = ", then ".join(f"{w:.4g} W for {s:.4g} s" for w, s in loads)
    which = " (the heaviest load of the run, for as long as its longest)" if plan["is_default"] else ""
    yield f"temperature of run {run['name']} (id {run['run_id']}), {view['sensor']}"
    yield f"plan: {words}{which}, from {plan['start_c']:.1f} \u00b0C"
    yield from (f"  {note}" for note in view["notes"])
    yield ""
    for row in view["answers"]:
        yield figure({"window": None, "form": "", **row})
        if row["value"] is not None and row["reason"]:
            yield f"      {row['reason']}"
    yield ""
    constants = ", ".join(
        f"{part['resistance_c_per_w']:.3g} \u00b0C/W (warming {part['rc_rise_s']:.3g} s, cooling "
        f"{part['rc_decay_s']:.3g} s)"
        for part in model["parts"]
    )
    yield f"model of the run: {model['zero_power_c']:.1f} \u00b0C without power; {constants}"
    if model["coefficient_w_per_c"] is not None:
        ends = f"[{cell(model['coefficient_low'])}, {cell(model['coefficient_high'])}]"
        yield f"  temperature coefficient {cell(model['coefficient_w_per_c'])} {ends} W/\u00b0C"
    if view["checks"]:
        yield "loads of the run, each predicted with resistances that were fitted without it"
        rows = [
            {title: row[name] for name, title in CHECKS.items()} | {"load": middle(str(row["window"]), 32)}
            for row in view["checks"]
        ]
        yield from str(render(list(CHECKS.values()), rows, "table", width=width)).splitlines()
        errors = np.abs([row["error_c"] for row in view["checks"]])
        yield f"  error {errors.mean():.2f} \u00b0C on average, {errors.max():.2f} \u00b0C at worst"
