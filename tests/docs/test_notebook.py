"""The example notebook runs from its first cell to its last, on a store and on a service, and each result shows."""

import ast
import json
from typing import Any

import pytest
from sqlalchemy import Engine

from profsvc import docs, store
from tests.web.conftest import Service, looked_at

__all__ = ["looked_at"]
NOTEBOOK = docs.FOLDER / "howto" / "notebook.ipynb"


def code_cells() -> list[str]:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert [cell for cell in cells if cell.get("outputs")] == [], "keep the notebook without its outputs"
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def result_of(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell; return the value of the expression at its end."""
    *before, last = ast.parse(cell).body
    assert isinstance(last, ast.Expr), f"a cell ends with what it shows:\n{cell}"
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("kind", ["PROFSVC_STORE", "PROFSVC_URL"])
def test_every_cell_runs_and_shows_something(
    kind: str, demo: Engine, looked_at: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROFSVC_URL", raising=False)
    monkeypatch.setenv(kind, looked_at.url if kind == "PROFSVC_URL" else store.address(demo))
    names: dict[str, Any] = {}
    shown = [result_of(cell, names) for cell in code_cells()]
    tables = [one._repr_html_() for one in shown if hasattr(one, "_repr_html_")]
    names["lab"].target.close()
    assert len(tables) >= 5
    assert all("<table" in text and "<td>" in text for text in tables)
    assert all(shown[-1])
