"""The connection to a service: requests with a token, sent again where they were not answered."""

import random
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from profsvc.client import protocol
from profsvc.errors import ServerAwayError, UsageError

RETRY_DELAYS_S = (0.5, 1.0, 2.0, 4.0)
MAX_RETRY_DELAY_S = 30.0
MAX_TURN_S = 600.0
"""Seconds in which an upload tries again while others take all places: as long as a writer waits for a store."""
# HTTP status codes that a retry may change.
RETRY_STATUSES = {408, 429, 502, 503, 504}
# An upload may wait for its turn, and be read for minutes.
TIMEOUT = httpx.Timeout(600.0, connect=10.0, write=60.0, pool=10.0)
Params = Mapping[str, Any]


class Connection:
    """A service at an address; ``token`` authenticates."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        retry_delays_s: Sequence[float] | None = None,
        report: Callable[[str], None] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Prepare the connection; nothing is sent yet.

        ``retry_delays_s`` are the seconds between one try and the next; ``report`` gets a sentence before each retry.
        """
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"the address of a service begins with http:// or https://, not {url!r}")
        self.url = url.rstrip("/")
        self._retry_delays = RETRY_DELAYS_S if retry_delays_s is None else tuple(retry_delays_s)
        self._report = report
        self._got_response = False  # whether anything answered what was asked last
        if token and not (token.isascii() and token.isprintable()):
            raise UsageError("the token has characters that tokens never have; check PROFSVC_TOKEN")
        headers = {"user-agent": "profsvc"} | ({"authorization": f"Bearer {token}"} if token else {})
        # To load the certificates takes longer than a request. Over http nothing asks for them; by this context, which
        # knows none, every other host is refused.
        verify = True if url.lower().startswith("https://") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._http = httpx.Client(headers=headers, timeout=TIMEOUT, verify=verify, transport=transport)

    def __enter__(self) -> Self:
        """Give the client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def _request(
        self,
        method: str,
        path: str,
        params: Params,
        more: Callable[[], dict[str, Any]] = dict,
        *,
        once: bool = False,
        turn_s: float = 0.0,
    ) -> dict[str, Any]:
        """Send a request and return the response; unless ``once``, retry what was not answered.

        For ``turn_s`` seconds it is sent again however often the service says that it is overloaded.
        """
        delays = () if once else self._retry_delays
        turn_until = time.monotonic() + (turn_s if delays else 0.0)
        failed = 0
        while True:
            wait = delays[failed] if failed < len(delays) else None
            is_busy = False
            try:
                self._got_response = False
                with protocol.translate_network_errors(self.url):
                    answer = self._http.request(method, self.url + path, params=params, **more())
                self._got_response = True
                is_busy = protocol.is_overloaded(answer) and time.monotonic() < turn_until
                wait = delays[-1] if is_busy else wait
                if answer.status_code not in RETRY_STATUSES or wait is None:
                    return protocol.decode_response(answer, self.url)
                after = answer.headers.get("retry-after", "")
                pause = min(float(after), MAX_RETRY_DELAY_S) if after.isdigit() else wait
                reason = f"service answered {answer.status_code}"
            except ServerAwayError:
                if wait is None:
                    raise
                pause, reason = wait, "service unreachable"
            failed += not is_busy
            pause = min(pause, wait * 4) * random.uniform(0.5, 1.5)
            if self._report:
                number = "retry" if is_busy else f"retry {failed} of {len(delays)}"
                self._report(f"{reason}, {number} in {pause:.1f} s")
            time.sleep(pause)
