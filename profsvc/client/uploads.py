"""Uploads to a service, and the queue of those that cannot be sent now."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import httpx

from profsvc.client import protocol
from profsvc.client.connection import MAX_TURN_S, Connection, Params
from profsvc.client.spool import DamagedEntryError, Spool
from profsvc.errors import ServerAwayError, ServiceError, UsageError

Progress = Callable[[int], None]


def spool_folder() -> Path:
    """Return the default folder of uploads that are queued while a service is unreachable."""
    from platformdirs import user_state_path

    return Path(user_state_path("profsvc", appauthor=False)) / "spool"


class Uploads(Connection):
    """The part of `profsvc.client.Client` that sends files; ``spool`` queues them while the service is unreachable."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        spool: str | Path | None = None,
        retry_delays_s: Sequence[float] | None = None,
        report: Callable[[str], None] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Prepare the client; nothing is sent yet.

        ``retry_delays_s`` are the seconds between one try and the next; ``report`` gets a sentence before each retry.
        """
        super().__init__(url, token, retry_delays_s=retry_delays_s, report=report, transport=transport)
        self.spool = Path(spool) if spool else spool_folder()
        self._spool = Spool(self.spool)
        self._unreachable = False

    def submit(
        self,
        source: str | Path | BinaryIO,
        *,
        file_name: str | None = None,
        spool: bool | Params = False,
        progress: Progress | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Send a file and return the verdict on it; ``options`` are those of ``POST /v1/uploads``, such as ``run``.

        With ``spool`` the file is queued while the service is unreachable or overloaded. `sync` sends it later, with
        the options in ``spool`` added. The answer has the path as ``spooled`` and the reason as ``because``. Further
        files are then tried once each.
        """
        with protocol.rewindable(source) as (stream, name):
            digest = protocol.sha256_of(stream)
            params = {key: int(value) if isinstance(value, bool) else value for key, value in options.items()}
            params |= {"file_name": file_name or name, "sha256": digest}
            if not params.get("more"):
                params.pop("more", None)
            kept = spool is not False and not options.get("check")
            try:
                try:
                    return self._send(stream, params, progress, once=kept and self._unreachable, is_kept=kept)
                except UsageError as error:
                    if not params.pop("more", None) or "'more'" not in str(error):
                        raise
                    return self._send(
                        stream, params, progress, is_kept=kept
                    )  # an older service does not know the parameter
            except ServiceError as error:  # of the service, not of the file: it may be another time
                if not kept:
                    raise
                params |= spool if isinstance(spool, Mapping) else {}
                params.pop("more", None)  # the last may have been sent when this one is
                waits = str(self._spool_upload(stream, params))
                return {"ok": True, "spooled": waits, "file_name": params["file_name"], "because": str(error)}

    def _send(
        self,
        stream: BinaryIO,
        params: Params,
        progress: Progress | None = None,
        *,
        once: bool = False,
        is_kept: bool = True,
    ) -> dict[str, Any]:
        size = stream.seek(0, os.SEEK_END)
        headers = {"content-type": "application/octet-stream", "content-length": str(size)}

        def pieces() -> Iterator[bytes]:
            stream.seek(0)
            while piece := stream.read(protocol.CHUNK_BYTES):
                yield piece
                if progress:
                    progress(len(piece))

        def body() -> dict[str, Any]:
            return {"content": pieces(), "headers": headers}

        try:
            turn_s = 0.0 if is_kept else MAX_TURN_S  # what is kept can be sent another time
            said = self._request("POST", "/v1/uploads", params, body, once=once, turn_s=turn_s)
        except ServerAwayError:
            self._unreachable = True
            raise
        self._unreachable = False
        return said

    def _spool_upload(self, stream: BinaryIO, params: Params) -> Path:
        """Queue a file for later."""
        try:
            return self._spool.keep(stream, self.url, params)
        except OSError as error:
            raise ServiceError(
                f"{self.url} is unreachable, and {self.spool} cannot store the file: {error.strerror}"
            ) from None

    def waiting(self) -> list[Path]:
        """Return the uploads that are queued for this service, oldest first."""
        found = []
        for path in self._spool.entries():
            with suppress(FileNotFoundError, DamagedEntryError):  # another process has sent it, or `sync` sets it aside
                if self._spool.read(path).url == self.url:
                    found.append(path)
        return found

    def sync(self) -> list[dict[str, Any]]:
        """Send the queued uploads that no other process is sending; return the verdicts.

        What the service refuses is moved to ``refused``, and what is damaged to ``damaged``, with why. What it has an
        error of its own for goes on waiting, and does not keep the next from being sent. Where the service goes away
        before anything was sent, that is raised.
        """
        return self._spool.send_all(self.url, self._send, self._is_alive)

    def _is_alive(self) -> bool:
        """Tell whether the service is reachable, after an answer that is not its own."""
        with suppress(httpx.HTTPError):
            return self._got_response and self._http.get(f"{self.url}/livez", timeout=10.0).status_code == 200
        return False
