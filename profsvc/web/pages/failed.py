"""An error as a page, in the words of the JSON, where a browser asks for one."""

from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import ProfsvcError, TokenError
from profsvc.web.answers import failure
from profsvc.web.log import LOG
from profsvc.web.pages.frame import HEADERS, MEDIA, path_to, written
from profsvc.web.way_in import cookie_of

TITLES = {
    400: "The question is wrong", 401: "Who are you?", 403: "Not allowed", 404: "Not found", 405: "Not allowed here",
    408: "Too slow", 413: "Too large", 422: "Refused", 502: "Not reached", 503: "Not now", 507: "The disk is full",
}  # fmt: skip
DEFECT = "Something is broken here"


def refusal(request: Request, error: ProfsvcError, request_id: str) -> Response:
    """Return the answer for an error: a page for who asks for pages, the one shape in JSON for all others."""
    plain = failure(error, request_id)
    if "text/html" not in request.headers.get("accept", ""):
        return plain
    try:
        body = _written(request, error, request_id)
    except Exception:  # the error matters more than its page
        LOG.exception("defect", extra={"fields": {"request_id": request_id}})
        return plain
    headers = {name: value for name, value in plain.headers.items() if name not in ("content-length", "content-type")}
    return Response(body, error.status, headers | HEADERS, MEDIA)


def _written(request: Request, error: ProfsvcError, request_id: str) -> bytes:
    is_unknown = isinstance(error, TokenError)
    asked = path_to(request, request.scope["path"].removeprefix(request.scope["root_path"]),
                    request.query_params.multi_items())  # fmt: skip
    return written(
        request,
        "error.html",
        TITLES.get(error.status, DEFECT),
        message=str(error),
        code=error.code(),
        status=error.status,
        request_id=request_id,
        is_unknown=is_unknown,
        after=asked if request.method == "GET" and is_unknown else path_to(request, "/"),
        again=_came_from_elsewhere(request) if is_unknown else False,
    )


def _came_from_elsewhere(request: Request) -> bool:
    """Tell whether a link of another site led here: a browser keeps its strict cookies back then, and only then."""
    said = request.headers.get("sec-fetch-site", "none")
    is_first = said in ("cross-site", "same-site") and request.headers.get("sec-fetch-mode") == "navigate"
    return is_first and request.method == "GET" and cookie_of(request.headers, request.cookies) is None
