"""Error pages for browsers, with the message of the JSON error."""

import re

from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import NotFoundError, ProfsvcError, TokenError
from profsvc.web.http.cookies import token_cookie
from profsvc.web.http.json_log import LOG
from profsvc.web.http.responses import error_response
from profsvc.web.pages.rendering.page import MEDIA_TYPE, PAGE_HEADERS, path_to, render

TITLES = {
    400: "Bad request", 401: "Log in", 403: "Not allowed", 404: "Not found", 405: "Method not allowed",
    408: "Request timeout", 413: "File too large", 422: "Rejected", 502: "Unreachable", 503: "Temporarily unavailable",
    507: "Disk full",
}  # fmt: skip
DEFECT_TITLE = "Internal error"


def error_answer(request: Request, error: ProfsvcError, request_id: str) -> Response:
    """Return the response for an error: a page for browsers, JSON for all other clients."""
    plain = error_response(error, request_id)
    if "text/html" not in request.headers.get("accept", ""):
        return plain
    try:
        body = _error_page(request, error, request_id)
    except Exception:  # the error matters more than its page
        LOG.exception("defect", extra={"fields": {"request_id": request_id}})
        return plain
    headers = {name: value for name, value in plain.headers.items() if name not in ("content-length", "content-type")}
    return Response(body, error.status, headers | PAGE_HEADERS, MEDIA_TYPE)


def _error_page(request: Request, error: ProfsvcError, request_id: str) -> bytes:
    is_unknown = isinstance(error, TokenError)
    requested_path = path_to(request, request.scope["path"].removeprefix(request.scope["root_path"]),
                    request.query_params.multi_items())  # fmt: skip
    below_run = re.match(r"/runs/([0-9]+)/.", requested_path) if error.status == NotFoundError.status else None
    is_run_unknown = str(error).startswith("no run ")
    return render(
        request,
        "error.html",
        TITLES.get(error.status, DEFECT_TITLE),
        message=str(error),
        code=error.code(),
        status=error.status,
        request_id=request_id,
        is_unknown=is_unknown,
        run=path_to(request, f"/runs/{below_run[1]}") if below_run and not is_run_unknown else "",
        after=requested_path if request.method == "GET" and is_unknown else path_to(request, "/"),
        again=_came_from_elsewhere(request) if is_unknown else False,
    )


def _came_from_elsewhere(request: Request) -> bool:
    """Tell whether a link of another site led here: only then a browser withholds its strict cookies."""
    fetch_site = request.headers.get("sec-fetch-site", "none")
    is_first = fetch_site in ("cross-site", "same-site") and request.headers.get("sec-fetch-mode") == "navigate"
    return is_first and request.method == "GET" and token_cookie(request.headers, request.cookies) is None
