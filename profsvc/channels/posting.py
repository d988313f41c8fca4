"""One POST to the address of a webhook."""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from profsvc.channels.configuration import Channel, is_loopback
from profsvc.channels.message import TransientError, one_line
from profsvc.errors import ServiceError, UsageError

if TYPE_CHECKING:
    import httpx

TIMEOUT_S, CONNECT_TIMEOUT_S = 10.0, 5.0
MAX_RESPONSE_BYTES = 64 << 10
MAX_RETRY_DELAY_S = 30.0


def post(channel: Channel, body: bytes, headers: Mapping[str, str]) -> str:
    """Post a body to the url of a channel and return where to.

    Raise `TransientError` where another try may do, else `ServiceError`.
    """
    import httpx  # 14 MB, which a service that posts nothing does not need

    url = require_safe_url(channel.secret("url"), channel.name)
    limits = httpx.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    host = str(urlsplit(url).hostname)
    try:
        with (
            httpx.Client(timeout=limits, follow_redirects=False) as http,
            http.stream("POST", url, content=body, headers={"user-agent": "profsvc", **headers}) as answer,
        ):
            said = _read_start(answer)
    except (httpx.TransportError, httpx.DecodingError) as error:  # the words of some errors hold the address: a secret
        raise TransientError(f"{host} does not answer ({type(error).__name__})") from None
    except httpx.InvalidURL:
        raise UsageError(f"channel {channel.name}: its url is no address") from None
    if answer.is_success:
        return f"{channel.kind} at {host}"
    if answer.status_code == 429 or answer.status_code >= 500:
        passing = TransientError(f"{host} answered {answer.status_code}: {said}")
        after = answer.headers.get("retry-after", "")
        passing.wait_s = min(float(after), MAX_RETRY_DELAY_S) if after.isdecimal() and after.isascii() else 0.0
        raise passing
    more = "; redirects are not followed" if answer.is_redirect else f": {said}"
    raise ServiceError(f"{host} answered {answer.status_code}{more}")


def _read_start(answer: "httpx.Response") -> str:
    """Read an answer as far as it is worth it, and return what it says first."""
    said = b""
    for piece in answer.iter_raw(4096):
        said += piece
        if len(said) >= MAX_RESPONSE_BYTES:
            break
    return one_line(said.decode("utf-8", "replace"), 200)


def require_safe_url(url: str, name: str) -> str:
    """Return the address of a webhook: https, or http on this machine alone."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        raise UsageError(f"channel {name}: its url must begin with https:// (or be http:// on this machine)")
    return url
