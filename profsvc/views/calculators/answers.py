"""The answer of a calculator as the dict that the command line, the API and the page show."""

from collections.abc import Mapping
from typing import Any

from profsvc.errors import UsageError, counted
from profsvc.reports.rows import plain
from profsvc.views.calculators.declaration import FILES, Calculator, Input, Values
from profsvc.views.calculators.values import checked_values

MAX_ROWS = 10_000


def calculate(calculator: Calculator, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the inputs and return the answer; raise `UsageError` for wrong ones."""
    return answer_to(calculator, checked_values(calculator, given))


def answer_to(calculator: Calculator, values: Values) -> dict[str, Any]:
    """Return the answer to checked inputs."""
    answer = calculator.answer(values)
    if len(answer.rows) > MAX_ROWS:
        raise UsageError(f"the answer has {len(answer.rows)} rows; allowed: {MAX_ROWS}; give fewer values")
    found: dict[str, Any] = plain(
        {
            "model": {
                "name": calculator.key,
                "title": calculator.title,
                "question": calculator.question,
                "source": calculator.source,
                "accuracy": calculator.accuracy,
            },
            "inputs": [_said(one, values[one.name]) for one in calculator.inputs],
            "columns": [*answer.columns],
            "rows": [{name: row.get(name) for name in answer.columns} for row in answer.rows],
            "notes": [*answer.notes],
            "figure": listed(answer.figure),
        }
    )
    return found


def describe(calculator: Calculator) -> dict[str, Any]:
    """Return what a calculator declares, for programs and for the list of models."""
    return {
        "name": calculator.key,
        "title": calculator.title,
        "question": calculator.question,
        "source": calculator.source,
        "inputs": [
            {"name": one.name, "kind": one.kind, "unit": one.unit, "help": one.help, "default": one.default}
            | {"choices": [*one.choices], "columns": [column.name for column in one.columns]}
            for one in calculator.inputs
        ],
    }


def _said(one: Input, value: Any) -> dict[str, Any]:
    if one.kind in FILES and value is not None:
        value = counted(len(value), "row" if one.kind == "table" else "entry")
    elif isinstance(value, list):
        value = ", ".join(f"{number:g}" for number in value[:20]) + (", ..." if len(value) > 20 else "")
    return {"name": one.name, "value": value, "unit": one.unit}


def listed(value: Any) -> Any:
    """Return the data of a figure with lists in place of arrays."""
    if isinstance(value, Mapping):
        return {name: listed(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [listed(inner) for inner in value]
    return value.tolist() if hasattr(value, "tolist") else value
