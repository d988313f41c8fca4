"""``/v1/models/list`` and ``/v1/models/{name}``: every model, and the answers of those with given inputs."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import UsageError
from profsvc.views.calculators.answers import calculate, describe
from profsvc.views.calculators.catalog import CALCULATORS, calculator_of
from profsvc.views.models.index import index
from profsvc.web.api.runs import RUN_DESCRIPTION, run_id_of
from profsvc.web.http.request_args import RequestArgs, require_object
from profsvc.web.http.responses import success
from profsvc.web.http.routes import add_route, path_param, query_param, rows_schema
from profsvc.web.http.state import app_state, in_worker_thread

EXAMPLE = query_param("example", "string", "1: inputs that are not given are those of the first example", "1")
BODY_SCHEMA = {
    "type": "object",
    "properties": {"inputs": {"type": "object"}, "example": {"type": "boolean"}},
    "additionalProperties": False,
    "example": {"inputs": {"work": 31, "depth": 5, "processors": "1,6"}},
}


def inputs_in_url(args: RequestArgs) -> tuple[dict[str, str], bool]:
    """Return the inputs in a query string, and whether those of the example are wanted."""
    wants_example, given = args.flag("example"), dict[str, str]()
    for name, value in args.remaining():
        if name in given:
            raise UsageError(f"{name} is given several times; give it once")
        given[name] = value
    return given, wants_example


def answer(name: str, given: Mapping[str, Any], wants_example: bool) -> dict[str, Any]:
    """Return the answer of a model."""
    calculator = calculator_of(name)
    first = dict(calculator.examples[0].values) if wants_example else {}
    return calculate(calculator, first | dict(given))


async def list_models(request: Request) -> Response:
    """Every model: question, inputs, command, view, page, source and accuracy; with a run whether it can answer."""
    return await in_worker_thread(_answer_list, request, app_state(request).long_limit)


def _answer_list(request: Request) -> Response:
    args = RequestArgs(request)
    run = args.text("run")
    args.reject_unknown()
    return success(request, index_of(request, run) | {"calculators": [describe(one) for one in CALCULATORS.values()]})


def index_of(request: Request, run: str) -> dict[str, Any]:
    """Return the list of models, for a run if there is one."""
    return index(app_state(request).engine, run_id_of(request, run) if run else None)


async def get_answer(request: Request) -> Response:
    """The answer of a model; its inputs are the parameters, a table as the text of its CSV."""
    return await _answer(request, *inputs_in_url(RequestArgs(request)))


async def post_answer(request: Request) -> Response:
    """The answer of a model; a table is the text of its CSV or a list of objects."""
    await request.body()
    RequestArgs(request).reject_unknown()
    try:
        body = require_object(await request.json(), "the body")
    except (ValueError, RecursionError):
        raise UsageError('the body must be JSON, such as {"inputs": {"work": 31, "depth": 5}}') from None
    if unknown := sorted(body.keys() - BODY_SCHEMA["properties"].keys()):  # type: ignore[attr-defined]
        raise UsageError(f"unknown key {unknown[0]!r} in the body; allowed: inputs, example")
    wants_example = body.get("example", False)
    if not isinstance(wants_example, bool):
        raise UsageError("example must be true or false")
    return await _answer(request, require_object(body.get("inputs", {}), "inputs"), wants_example)


async def _answer(request: Request, given: Mapping[str, Any], wants_example: bool) -> Response:
    found = await app_state(request).long_limit.run(answer, request.path_params["name"], given, wants_example)
    return success(request, found)


def register(app: FastAPI) -> None:
    """Add the routes."""
    gives = {"application/json": {"schema": rows_schema()}}
    run = query_param("run", "string", RUN_DESCRIPTION)
    add_route(app, "/v1/models/list", list_models, "read", name="list_calculators", takes=[run], gives=gives,
              tag="models")  # fmt: skip
    name = path_param("name", "name of the model", "work-depth")
    path, body = "/v1/models/{name}", {"application/json": {"schema": BODY_SCHEMA}}
    add_route(app, path, get_answer, "read", name="ask_model", takes=[name, EXAMPLE], gives=gives, tag="models")
    add_route(app, path, post_answer, "read", name="ask_model_in_body", methods=["POST"], takes=[name], gives=gives,
              body=body, tag="models")  # fmt: skip
