"""``/docs/api``: every path of the API, each with a form that asks it. Nothing is loaded from elsewhere.

Without a script, the form of a GET leads to its answer, and others are shown as a command.
"""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.web.http.openapi import first_sentence, operations
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import grant_of
from profsvc.web.pages.rendering.page import Links, page, path_to

GROUPS = {
    "runs": "Runs", "uploads": "Uploads", "views": "Views", "sql": "SQL", "reports": "Reports and findings",
    "models": "Models", "service": "Service",
}  # fmt: skip
PAGING_NAMES = {"limit", "after", "order", "columns", "formula"}
MAX_SHOWN_FILTERS = 14
"""More parameters than these are folded."""


def show_api(request: Request) -> Response:
    """List the operations by group."""
    RequestArgs(request).reject_unknown()
    groups: dict[str, list[dict[str, Any]]] = {name: [] for name in GROUPS}
    for name, one in operations(request.app).items():
        groups.setdefault(one["tags"][0], []).append({**one, "name": name, "what": _with_code(first_sentence(one))})
    return page(
        request, "docs/api.html", "API", links=Links(path_to(request, "/openapi.json")),
        groups=[(GROUPS.get(tag, tag.capitalize()), rows) for tag, rows in groups.items() if rows],
        scopes=store.SCOPES,
    )  # fmt: skip


def _with_code(text: str) -> Markup:
    """Return a text as HTML, with the parts between backticks as code."""
    return Markup(re.sub(r"`+([^`]+)`+", r"<code>\1</code>", str(escape(text))))


def show_operation(request: Request) -> Response:
    """Show an operation with a form that asks it."""
    name = request.path_params["operation"]
    known = operations(request.app)
    if name not in known:
        raise NotFoundError.near("operation of the API", name, known)
    one = known[name]
    fields = [_field(parameter) for parameter in one["parameters"]]
    shown = [field for field in fields if field["is_path"] or field["required"] or field["name"] in PAGING_NAMES]
    folded = [field for field in fields if field not in shown] if len(fields) > MAX_SHOWN_FILTERS else []
    content: dict[str, Any] = next(
        (said["content"] for code, said in one["responses"].items() if code.startswith("2")), {}
    )
    body = one.get("requestBody", {}).get("content", {})
    return page(
        request, "docs/operation.html", f"{one['method']} {one['path']}", operation=one, name=name,
        what=_with_code(one["description"]),
        fields=[field for field in fields if field not in folded], folded=folded, media_types=list(content),
        columns=_columns(content.get("application/json", {}).get("schema", {})), body=_body(body),
        curl=_curl(request, one, fields), python=_python(one, str(request.base_url).rstrip("/")),
        may_ask=grant_of(request).allows(one["x-scope"]),
        group=GROUPS.get(one["tags"][0], one["tags"][0]),
    )  # fmt: skip


def _field(parameter: Mapping[str, Any]) -> dict[str, Any]:
    schema = parameter["schema"]
    items = schema.get("items", schema)
    return {
        "name": parameter["name"], "says": _with_code(parameter.get("description", "")),
        "is_path": parameter["in"] == "path",
        "required": parameter["required"] or parameter["in"] == "path", "example": str(parameter.get("example", "")),
        "kind": schema.get("type", "string"), "choices": [str(one) for one in items.get("enum", ())],
    }  # fmt: skip


def _columns(schema: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the columns of the rows of an answer with their types and meanings."""
    columns = schema.get("properties", {}).get("rows", {}).get("items", {}).get("properties", {})
    return [
        (name, " or ".join([one["type"]] if isinstance(one["type"], str) else one["type"]), one.get("description", ""))
        for name, one in columns.items()
        if "type" in one
    ]


def _body(content: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the media type of a body, and an example of it; without one, a file is sent."""
    if not content:
        return None
    media = "application/json" if "application/json" in content else next(iter(content))
    schema = content[media].get("schema", {})
    example = schema.get("example") or dict.fromkeys(schema.get("required", ()), "")
    text = json.dumps(example, indent=2, ensure_ascii=False) if media == "application/json" else ""
    return {"media": media, "text": text}


def _example_path(request: Request, operation: Mapping[str, Any], fields: list[dict[str, Any]]) -> str:
    values = {field["name"]: field["example"] for field in fields if field["is_path"]}
    asked = {field["name"]: field["example"] for field in fields if not field["is_path"] and field["required"]}
    return path_to(request, _filled(operation["path"], values), asked)


def _filled(path: str, values: Mapping[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda part: values.get(part[1]) or part[0], path)


def _curl(request: Request, operation: Mapping[str, Any], fields: list[dict[str, Any]]) -> str:
    words = ["curl"] + (["-X", operation["method"]] if operation["method"] not in ("GET", "POST") else [])
    if operation["x-scope"] != "anyone":
        words += ["-H", "Authorization: Bearer $PROFSVC_TOKEN"]
    if (body := _body(operation.get("requestBody", {}).get("content", {}))) is not None:
        is_json = body["media"] == "application/json"
        words += ["--json", json.dumps(json.loads(body["text"]))] if is_json else ["--data-binary", "@FILE"]
    elif operation["method"] == "POST":
        words += ["-X", "POST"]
    quoted = [f'"{word}"' if "$" in word else shlex.quote(word) for word in words]
    address = f"{request.url.scheme}://{request.url.netloc}{_example_path(request, operation, fields)}"
    return " ".join([*quoted, shlex.quote(address)])


def _python(operation: Mapping[str, Any], base: str) -> str:
    """Return the call of the client for a view; others are in the reference of the client."""
    if operation["tags"][0] != "views":
        return ""
    view = operation["path"].removeprefix("/v1/")
    return f'Client("{base}", token).table("{view}")'


def ask_operation(request: Request) -> Response:
    """Lead to the answer of a GET that a form asks, without the empty fields of the form."""
    name = request.path_params["operation"]
    known = operations(request.app)
    if name not in known or known[name]["method"] != "GET":
        raise NotFoundError(f"no operation that a link can ask is named {name[:100]!r}")
    given = [(key, value) for key, value in request.query_params.multi_items() if value]
    inside = set(re.findall(r"{(\w+)}", known[name]["path"]))
    values = dict(given)
    if missing := sorted(part for part in inside if not values.get(part)):
        raise UsageError(f"{missing[0]} is missing: it is a part of the path {known[name]['path']}")
    asked = [(key, value) for key, value in given if key not in inside]
    return RedirectResponse(path_to(request, _filled(known[name]["path"], values), asked), 303)


def register(app: FastAPI) -> None:
    """Add the routes, before those of the documentation, whose names may contain anything."""
    add_page(app, "/docs/api", show_api, "read", name="api_page")
    add_page(app, "/docs/api/{operation}", show_operation, "read", name="operation_page")
    add_page(app, "/docs/api/{operation}/ask", ask_operation, "read", name="ask_operation")
