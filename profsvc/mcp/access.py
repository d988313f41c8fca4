"""Whom a call is from, and what it may do: tokens and scopes are those of the HTTP service."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from profsvc import store
from profsvc.api import LocalStore
from profsvc.client import Client
from profsvc.errors import AccessError, TokenError

NEEDS_TOKEN = "authentication needed: send the header `Authorization: Bearer psvc_...`"
Target = LocalStore | Client


class Access:
    """The store or service behind the tools; over HTTP each call acts with the token of its request alone."""

    def __init__(self, target: Target, *, over_http: bool = False, is_public: bool = False) -> None:
        """Guard ``target``; ``is_public`` if others than this machine reach the tools."""
        self.target, self.over_http, self.is_public = target, over_http, is_public

    def for_call(self, headers: Mapping[str, str] | None, scope: str) -> Target:
        """Return what a call may use; raise `AccessError` if its token lacks the scope.

        Over stdio the caller is the user who started the server. A service decides itself what a token may do.
        """
        if not self.over_http:
            return self.target
        token = bearer_token(headers or {})
        if isinstance(self.target, Client):
            return Client(self.target.url, token or None)
        grant = self.grant(token)
        if not grant.allows(scope):
            has = ", ".join(sorted(grant.scopes))
            raise AccessError(f"this needs a token with the scope {scope!r}; yours has: {has}")
        local = self.target
        return LocalStore(
            local.engine, local.files, seconds=local.seconds, project=grant.project, replica=local.replica
        )

    def grant(self, token: str) -> store.Grant:
        """Return what a token may do in the store; raise `TokenError` if it is needed or not valid."""
        assert isinstance(self.target, LocalStore)
        if token:
            if (found := store.find_grant(self.target.engine, token)) is None:
                raise TokenError("invalid, expired or revoked token")
            return found
        if self.is_public or store.requires_token(self.target.engine):
            raise TokenError(NEEDS_TOKEN)
        return store.FULL_ACCESS

    def admit(self, headers: Mapping[str, str]) -> None:
        """Raise `TokenError` for a request that no tool would answer."""
        token = bearer_token(headers)
        if isinstance(self.target, LocalStore):
            self.grant(token)
        elif self.is_public and not token:
            raise TokenError(NEEDS_TOKEN)


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the token of a request; empty without one.

    >>> bearer_token({"authorization": "Bearer psvc_1"}), bearer_token({})
    ('psvc_1', '')
    """
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def guarded(app: Any, access: Access) -> Callable[..., Any]:
    """Return the ASGI application that answers 401 to requests without a valid token."""
    from anyio import to_thread
    from starlette.datastructures import Headers

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            try:
                await to_thread.run_sync(access.admit, Headers(scope=scope))
            except TokenError as error:
                body = json.dumps({"ok": False, "error": {"code": error.code(), "message": str(error)}}).encode()
                sent = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
                await send({"type": "http.response.start", "status": error.status, "headers": sent})
                await send({"type": "http.response.body", "body": body})
                return
        await app(scope, receive, send)

    return answer
