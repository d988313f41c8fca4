"""``/models``, ``/models/{name}`` with a form and the answer of a model, and ``/runs/{run}/graph``."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import NotFoundError, UsageError
from profsvc.reports.plots import lines
from profsvc.views.calculators.answers import answer_to
from profsvc.views.calculators.catalog import CALCULATORS, calculator_of
from profsvc.views.calculators.declaration import FILES, Calculator, Input, example_command
from profsvc.views.calculators.values import allowed, check
from profsvc.views.models import run_graph
from profsvc.web.api.models import index_of, inputs_in_url
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.figures import figure
from profsvc.web.pages.rendering.page import Links, form_fields, page, path_to
from profsvc.web.pages.rendering.tables import Column, plain_columns
from profsvc.web.pages.runs.run import run_id_of

MAX_ROWS = 500


def show_models(request: Request) -> Response:
    """List the models; with a run also whether it can answer."""
    args = RequestArgs(request)
    run = args.text("run")
    args.reject_unknown()
    view = index_of(request, run)
    links = Links(json=path_to(request, "/v1/models/list", {"run": run}))
    calculators = {one.key for one in CALCULATORS.values()}
    return page(request, "models/models.html", "Models", links=links, view=view, run=run, calculators=calculators)


async def show_model(request: Request) -> Response:
    """Show the form of a model and, where inputs are given, its answer."""
    calculator = calculator_of(request.path_params["name"])
    given, wants_example = inputs_in_url(RequestArgs(request))
    first = dict(calculator.examples[0].values) if wants_example else {}
    return await _answered(request, calculator, first | given)


async def answer_form(request: Request) -> Response:
    """Show the answer to a form with a table or a document."""
    calculator = calculator_of(request.path_params["name"])
    return await _answered(request, calculator, await form_fields(request))


async def _answered(request: Request, calculator: Calculator, given: Mapping[str, str]) -> Response:
    return await app_state(request).long_limit.run(_page, request, calculator, given)


def _page(request: Request, calculator: Calculator, given: Mapping[str, str]) -> Response:
    view, problems, message = None, dict[str, str](), ""
    try:
        values, problems = check(calculator, given)
        view = answer_to(calculator, values) if given and not problems else None
    except UsageError as error:
        message = str(error)
    problems = problems if given else {}
    has_files = any(one.kind in FILES for one in calculator.inputs)
    query = {} if has_files else given
    links = Links(json=path_to(request, f"/v1/models/{calculator.key}", query)) if view and not has_files else Links()
    return page(
        request, "models/model.html", calculator.title, status=400 if message or problems else 200, links=links,
        model=calculator, fields=[_field(one, given, problems) for one in calculator.inputs], message=message,
        has_files=has_files, view=view, plot=_plot(view), columns=_columns(calculator, view["rows"]) if view else (),
        rows=view["rows"][:MAX_ROWS] if view else (), command=example_command(calculator, calculator.examples[0]),
    )  # fmt: skip


def _columns(calculator: Calculator, rows: list[dict[str, Any]]) -> list[Column]:
    """Return the columns of an answer, each explained by its model."""
    return plain_columns(rows, explain=dict.fromkeys(rows[0], f"model.{calculator.key}"))


def _plot(view: Mapping[str, Any] | None) -> Any:
    if view is None or view["figure"] is None:
        return None
    data = view["figure"]
    return figure("model", data["title"], lambda: lines.draw(data), data, description=f"{data['y']} over {data['x']}")


def _field(one: Input, given: Mapping[str, str], problems: Mapping[str, str]) -> dict[str, Any]:
    value = given.get(one.name, one.default or "")
    return {"name": one.name, "title": one.name.replace("_", " "), "unit": one.unit, "help": one.help,
            "kind": one.kind, "choices": one.choices, "value": value, "problem": problems.get(one.name, ""),
            "allowed": allowed(one), "columns": one.columns, "is_required": one.default is None,
            "lines": min(max(value.count("\n") + 2, 6), 24)}  # fmt: skip


GRAPH_EXPLANATIONS = {
    "launch": "figure.launch", "data_stall": "graph.stall", "conflicts": "graph.stall",
    **{name: f"graph.{name}" for name in ("times", "total_us", "mean_us", "share", "visits", "balance",
                                          "predicted_us", "measured_us", "ratio")},
}  # fmt: skip
"""Column of the graph -> the explanation of its numbers."""


def _graph_columns(rows: list[dict[str, Any]]) -> list[Column]:
    columns = plain_columns(rows, (), GRAPH_EXPLANATIONS)
    return [one._replace(explain="graph.device") if one.name == "device" else one for one in columns]


def show_graph(request: Request) -> Response:
    """Show the work-flow graph of a run: what follows what in its trace, and the average warps of its launches."""
    args = RequestArgs(request)
    part = args.text("show") or run_graph.NODES
    args.reject_unknown()
    run_id, engine = run_id_of(request), app_state(request).engine
    try:
        view, message = run_graph.run_graph(engine, run_id, part), ""
    except NotFoundError as error:
        if part not in run_graph.SHOWS:
            raise
        view, message = None, str(error)
    links = Links(json=path_to(request, f"/v1/runs/id:{run_id}/graph", {"show": part})) if view else Links()
    return page(
        request, "models/graph.html", "Work-flow graph", links=links, run_id=run_id, parts=run_graph.SHOWS, part=part,
        message=message, view=view, columns=_graph_columns(view["rows"]) if view else (),
        model=run_graph.MODEL,
    )  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/runs/{run}/graph", show_graph, "read", name="graph_page", heavy=True)
    add_page(app, "/models", show_models, "read", name="models_page")
    add_page(app, "/models/{name}", show_model, "read", name="model_page")
    add_page(app, "/models/{name}", answer_form, "read", name="model_form", methods=["POST"])
