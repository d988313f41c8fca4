"""Methods of the client for the service itself: tokens, schedules, channels, storage and saved queries.

They need the scope admin, those of saved queries sql.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from profsvc.client import protocol
from profsvc.client.connection import Connection


class Administration(Connection):
    """The part of `profsvc.client.Client` that is about the service itself."""

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        # Never sent twice: what was done by a try without an answer must not be done again.
        return self._request("POST", path, {}, lambda: {"json": protocol.encode_request(body)}, once=True)

    def tokens(self) -> list[dict[str, Any]]:
        """Return all tokens, without their secrets."""
        found: list[dict[str, Any]] = self._request("GET", "/v1/tokens", {})["tokens"]
        return found

    def create_token(
        self, name: str, scopes: Sequence[str] = (), *, project: str | None = None, days: float | None = None
    ) -> str:
        """Create a token and return it; it is shown only now. Without ``scopes`` it may upload and read."""
        body = {"name": name, "scopes": list(scopes), "project": project, "days": days}
        return str(self._post("/v1/tokens", body)["token"])

    def revoke_token(self, name: str | int) -> dict[str, Any]:
        """Revoke a token, by name or number."""
        return self._post(f"/v1/tokens/{protocol.quote_path(name)}", {"act": "revoke"})

    def schedules(self) -> list[dict[str, Any]]:
        """Return all schedules with their next times."""
        found: list[dict[str, Any]] = self._request("GET", "/v1/schedules/list", {})["schedules"]
        return found

    def add_schedule(self, kind: str, cron: str, **options: Any) -> dict[str, Any]:
        """Add a schedule and return it; ``options`` are ``zone``, ``project`` and ``arguments``."""
        found: dict[str, Any] = self._post("/v1/schedules", {"kind": kind, "cron": cron, **options})["schedule"]
        return found

    def change_schedule(self, number: int, act: str) -> dict[str, Any]:
        """Change a schedule; ``act`` is pause, resume, run (now) or remove."""
        return self._post(f"/v1/schedules/{number}", {"act": act})

    def change_run(
        self, run: str | int, *, name: str | None = None, tags: Mapping[str, str | None] | None = None
    ) -> dict[str, Any]:
        """Rename a run, and set its tags; a tag without a value is removed."""
        return self._post(f"/v1/runs/{protocol.quote_path(run)}", {"name": name, "tags": dict(tags or {})})

    def delete_run(self, run: str | int) -> dict[str, Any]:
        """Delete a run; the answer has the ``uploads`` that restore it."""
        return self._request("DELETE", f"/v1/runs/{protocol.quote_path(run)}", {}, once=True)

    def restore_upload(self, upload: int) -> dict[str, Any]:
        """Restore a deleted upload, with its run."""
        return self._post(f"/v1/uploads/{upload}/restore", {})

    def run_groups(self) -> list[dict[str, Any]]:
        """Return the newest runs by project and branch, with their GPU times."""
        found: list[dict[str, Any]] = self._request("GET", "/v1/groups", {})["groups"]
        return found

    def channels(self) -> list[dict[str, Any]]:
        """Return the channels of reports, without their secrets."""
        found: list[dict[str, Any]] = self._request("GET", "/v1/channels", {})["channels"]
        return found

    def test_channel(self, name: str) -> dict[str, Any]:
        """Send a test message to a channel."""
        return self._post(f"/v1/channels/{protocol.quote_path(name)}", {"act": "test"})

    def save_query(
        self, name: str, sql: str, params: Mapping[str, str] | None = None, chart: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Save a query under a name, for everyone; ``table("saved_queries")`` lists them."""
        body = {"sql": sql, "params": dict(params or {}), "chart": dict(chart or {})}
        path = f"/v1/saved_queries/{protocol.quote_path(name)}"
        found: dict[str, Any] = self._request("PUT", path, {}, lambda: {"json": protocol.encode_request(body)})["query"]
        return found

    def delete_query(self, name: str) -> dict[str, Any]:
        """Delete a saved query and return it."""
        path = f"/v1/saved_queries/{protocol.quote_path(name)}"
        found: dict[str, Any] = self._request("DELETE", path, {}, once=True)["query"]
        return found

    def storage(self) -> dict[str, Any]:
        """Return the address of the store and the findings of its checks."""
        found: dict[str, Any] = self._request("GET", "/v1/storage", {})["storage"]
        return found
