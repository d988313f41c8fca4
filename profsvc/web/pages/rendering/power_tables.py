"""Tables of the power of each unit and on several numbers of SMs, for the pages of a run and of a launch."""

from collections.abc import Mapping
from typing import Any

from profsvc.errors import NotFoundError
from profsvc.reports.text.models.values import interval
from profsvc.reports.text.power.components import best_sms_words
from profsvc.views.power import sm_counts
from profsvc.web.pages.rendering.tables import Column

COMPONENT_EXPLANATION = "v1_power_models.of_components"
UNIT_POWER_COLUMNS = {
    "kernel": Column("kernel", "Kernel", "name"),
    "predicted_power_w": Column(
        "predicted_power_w", "Predicted (W) [95 % of errors]", "number", explain=COMPONENT_EXPLANATION
    ),
    "error_percent": Column("error_percent", "Error (%)", "number"),
    "reason": Column("reason", "Reason"),
}
SM_COUNT_COLUMNS = [
    Column("load", "Load", "name"),
    Column("sensor", "Sensor", "name"),
    Column("sms", "SMs", "number"),
    Column("power_w", "Settled (W)", "number", explain="v1_power.settled_power_w"),
    *(
        Column(name, title, "percent", explain="v1_power_models.of_performance_per_watt")
        for name, title in (
            ("of_best", "Work per joule, of the best"),
            ("energy_saved", "Energy saved"),
            ("runtime_energy_saved", "Above idle"),
            ("gated_energy_saved", "If idle SMs were off"),
        )
    ),
]


def unit_power_table(view: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return rows, columns and notes of the power of each unit by kernel; None without any."""
    if not view["rows"]:
        return None
    used = [name for name in view["columns"] if any(row.get(name) for row in view["rows"])]
    columns = [UNIT_POWER_COLUMNS.get(name) or _unit_power_column(name) for name in used if name not in ("low", "high")]
    rows = [{**dict.fromkeys(view["columns"]), **row} for row in view["rows"]]
    for row in rows:
        row["predicted_power_w"] = interval(row, "predicted_power_w", "low", "high")
    return {"rows": rows, "columns": columns, "notes": view["notes"]}


def _unit_power_column(name: str) -> Column:
    title = name.removeprefix("unit_power_w_").removesuffix("_power_w").replace("_", " ")
    return Column(name, f"{title} (W)", "number", explain=COMPONENT_EXPLANATION)


def sm_count_table(view: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the loads on several numbers of SMs, the best number of each in words; None without any."""
    try:
        found = sm_counts.sm_counts_of_view(view)
    except NotFoundError:
        return None
    return {"rows": found["rows"], "columns": SM_COUNT_COLUMNS,
            "notes": [*(best_sms_words(row) for row in found["best"]), *found["notes"]]}  # fmt: skip
