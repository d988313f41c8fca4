"""Every model: what it answers, where, how accurate it is, and whether a run has what it needs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc import specs, store
from profsvc.errors import counted
from profsvc.reports.ratios import factor
from profsvc.store.queries.runs.model_coverage import Coverage, coverage
from profsvc.views.calculators.catalog import CALCULATORS
from profsvc.views.calculators.declaration import FILES, Calculator, example_command
from profsvc.views.models import past_errors

if TYPE_CHECKING:
    from sqlalchemy import Engine

COLUMNS = ("name", "title", "question", "inputs", "command", "view", "page", "source", "accuracy")
COLUMNS_OF_RUN = ("answers", "why")
ALL, SOME, NONE, GIVEN = "yes", "partly", "no", "from inputs"
"""Whether a run can answer; models that answer from given inputs need no run."""
SUBJECTS = {"launch_id": "launch"}
MAX_LAUNCHES = 100
"""Of a run with more launches, the answers to the longest are counted."""


def index(engine: "Engine | None" = None, run: str | int | None = None) -> dict[str, Any]:
    """Return one row per model; with a run also whether it answers, else what is missing.

    Of more than `MAX_LAUNCHES` launches the longest are looked at.
    """
    rows = model_rows()
    if run is None or engine is None:
        return {"run": None, "columns": [*COLUMNS], "rows": rows}
    info = store.select(engine, "v1_runs", run_id=store.find_run(engine, run))[0]
    recorded = _recorded(engine, info["device"])
    among: list[int] = []
    if (info["launches"] or 0) > MAX_LAUNCHES:
        longest, _ = store.longest_launches(engine, info["run_id"], MAX_LAUNCHES)
        among = [launch["launch_id"] for launch in longest]
    for row in rows:
        row |= _answers(engine, info["run_id"], row["name"], among)
        row["accuracy"] = recorded.get(row["name"], row["accuracy"])
        row["command"] = row["command"].replace("RUN", f"id:{info['run_id']}")
    about = {name: info[name] for name in ("run_id", "project", "name", "device")}
    return {"run": about, "columns": [*COLUMNS, *COLUMNS_OF_RUN], "rows": rows}


def model_rows() -> list[dict[str, Any]]:
    """Return one row per model: those that answer about a run, then those that answer from given inputs."""
    return [
        *(_row_of_model(model) for model in specs.all_models().values()),
        *(_row_of_calculator(one) for one in CALCULATORS.values()),
    ]


def functions_of(name: str) -> tuple[str, ...]:
    """Return the functions behind a model, below `profsvc.formulas`."""
    model = specs.all_models().get(name)
    return CALCULATORS[name].functions if model is None else model.functions


def _row_of_model(model: specs.Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "title": model.title,
        "question": model.question,
        "inputs": model.needs,
        "command": model.command,
        "view": model.view,
        "page": model.page,
        "source": model.source,
        "accuracy": model.accuracy,
    }


def _row_of_calculator(one: Calculator) -> dict[str, Any]:
    inputs = (f"{i.name} ({'CSV' if i.kind == 'table' else 'TOML'})" if i.kind in FILES else i.name for i in one.inputs)
    return {
        "name": one.key,
        "title": one.title,
        "question": one.question,
        "inputs": ", ".join(inputs),
        "command": example_command(one, one.examples[0]),
        "view": None,
        "page": f"/models/{one.key}",
        "source": one.source,
        "accuracy": one.accuracy,
    }


def _answers(engine: "Engine", run_id: int, name: str, among: Sequence[int]) -> dict[str, str]:
    """Return whether a run can answer, and what is missing; of launches only those ``among`` are looked at, if any."""
    model = specs.all_models().get(name)
    if model is None:
        return {"answers": GIVEN, "why": ""}
    found = coverage(engine, model.view, run_id, model.where, model.value, model.subject, among)
    if not found.subjects:
        return {"answers": NONE, "why": f"needs {model.needs}"}
    missing = found.subjects - found.answered
    if not missing:
        return {"answers": ALL, "why": ""}
    what = counted(missing, SUBJECTS.get(model.subject, "row"))
    whole = f"the longest {found.subjects}" if among and model.subject in SUBJECTS else str(found.subjects)
    return {"answers": SOME if found.answered else NONE, "why": f"{what} of {whole}: {_reason(found)}"}


def _reason(found: Coverage) -> str:
    return found.reason or "no reason is recorded"


def _recorded(engine: "Engine", device: str | None) -> Mapping[str, str]:
    """Return the errors of the models of time on a device in this store."""
    if device is None:
        return {}
    records = past_errors.records(past_errors.pairs_of(engine, device), "", None)
    return {
        name: f"median factor {factor(one['factor'])} over {counted(one['kernels'], 'kernel')} of {device} in this "
        f"store; 8 of 10 took {one['low']:.2f} to {one['high']:.2f} of the predicted time"
        for name, one in records.items()
    }
