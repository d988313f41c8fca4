"""Tokens of the service: create, list, revoke, and check those of requests.

A token is ``psvc_`` and 256 random bits in hex. With so many bits no slow hash is needed: only its SHA-256 is stored.
Rows of revoked tokens stay, so that authentication never turns itself off.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError, ServiceError, UsageError
from profsvc.store.connection import locks
from profsvc.store.connection.locks import lock_file_of
from profsvc.store.connection.sql import Engine, dicts_of, text
from profsvc.store.connection.timestamps import format_time
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.connection.urls import file_of

TOKEN_PREFIX = "psvc_"
SCOPES = {
    "upload": "send files",
    "read": "read the views, runs and comparisons",
    "sql": "ask with SQL",
    "admin": "all of these, and what is done to the service itself",
}
MIN_USE_INTERVAL = timedelta(minutes=1)
"""When a token was used is written down no more often than this."""
_FORM = re.compile(rf"{TOKEN_PREFIX}[0-9a-f]{{64}}")
_ACTIVE = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)"


class Grant(NamedTuple):
    """What a request may do: the number of its token (None without one), its scopes, and its project (None: all)."""

    token_id: int | None
    scopes: frozenset[str]
    project: str | None = None

    def allows(self, scope: str) -> bool:
        """Tell whether a scope is among them."""
        return bool({scope, "admin"} & self.scopes)


FULL_ACCESS = Grant(None, frozenset(SCOPES))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def create_token(
    engine: Engine, name: str, scopes: Iterable[str], project: str | None = None, days: float | None = None
) -> str:
    """Create a token and return it; it cannot be shown again."""
    wanted = set(scopes)
    if not wanted or not wanted <= SCOPES.keys():
        given = ", ".join(sorted(wanted - SCOPES.keys())) or "none"
        raise UsageError(f"a token needs scopes of {', '.join(SCOPES)}; given: {given}")
    if not name.strip():
        raise UsageError("a token needs a name, by which it is found again, such as ci")
    if project is not None and wanted & {"sql", "admin"}:
        raise UsageError(
            "SQL and administration reach every project, so a token of one project can only have the scopes upload "
            "and read; leave out --project, or these scopes"
        )
    if days is not None and not 0 < days < 36525:
        raise UsageError(f"a token cannot live for {days:g} days; give more than 0 and less than 36525")
    token, now = TOKEN_PREFIX + secrets.token_hex(32), datetime.now(UTC)
    row = {
        "name": name,
        "hash": _hash(token),
        "scopes": " ".join(scope for scope in SCOPES if scope in wanted),
        "project": project,
        "created_at": format_time(now),
        "expires_at": None if days is None else format_time(now + timedelta(days=days)),
    }
    columns = ", ".join(row)
    with writing(engine) as connection:
        connection.execute(text(f"INSERT INTO tokens ({columns}) VALUES (:{columns.replace(', ', ', :')})"), row)
    return token


def list_tokens(engine: Engine) -> list[dict[str, Any]]:
    """Return all tokens with number, name, scopes, project, times, and whether they are active."""
    query = text(
        "SELECT token_id, name, scopes, project, created_at, expires_at, last_used_at, revoked_at,"
        f" CASE WHEN {_ACTIVE} THEN 1 ELSE 0 END AS active FROM tokens ORDER BY token_id"
    )
    with reading(engine) as connection:
        return dicts_of(connection.execute(query, {"now": format_time(datetime.now(UTC))}))


def revoke_token(engine: Engine, name_or_id: str) -> dict[str, Any]:
    """Revoke a token; return its row."""
    rows = [row for row in list_tokens(engine) if row["revoked_at"] is None]
    found = [row for row in rows if name_or_id == row["name"]] or [r for r in rows if name_or_id == str(r["token_id"])]
    if not found:
        raise NotFoundError.near("active token", name_or_id, [row["name"] for row in rows])
    if len(found) > 1:
        raise UsageError(f"{name_or_id!r} names the tokens {', '.join(str(r['token_id']) for r in found)}; say which")
    row = {"now": format_time(datetime.now(UTC)), "token_id": found[0]["token_id"]}
    with writing(engine) as connection:
        connection.execute(text("UPDATE tokens SET revoked_at = :now WHERE token_id = :token_id"), row)
    return found[0]


def token_name(engine: Engine, grant: Grant) -> str | None:
    """Return the name of the token of a grant; None without a token."""
    with reading(engine) as connection:
        query = text("SELECT name FROM tokens WHERE token_id = :token_id")
        name: str | None = connection.execute(query, {"token_id": grant.token_id}).scalar()
    return name


def requires_token(engine: Engine) -> bool:
    """Tell whether the store ever had a token: then every request needs one."""
    with reading(engine) as connection:
        return connection.execute(text("SELECT 1 FROM tokens LIMIT 1")).first() is not None


def find_grant(engine: Engine, token: str) -> Grant | None:
    """Return the access that a token grants; None if it is unknown or no longer active."""
    if not _FORM.fullmatch(token):
        return None
    now, digest = datetime.now(UTC), _hash(token)
    query = text(f"SELECT token_id, hash, scopes, project, last_used_at FROM tokens WHERE hash = :hash AND {_ACTIVE}")
    with reading(engine) as connection:
        row = connection.execute(query, {"hash": digest, "now": format_time(now)}).first()
    if row is None or not hmac.compare_digest(row.hash, digest):
        return None
    if row.last_used_at is None or row.last_used_at < format_time(now - MIN_USE_INTERVAL):
        _note_use(engine, row.token_id, format_time(now))
    return Grant(row.token_id, frozenset(row.scopes.split()), row.project)


def _note_use(engine: Engine, token_id: int, now: str) -> None:
    """Write down when a token was used; a store that is busy, or only read, is not waited for."""
    file = file_of(engine)
    try:
        if file is not None:
            with locks.hold_lock(lock_file_of(file), "it writes to the store", seconds=0.05):
                _update_use(engine, token_id, now)
        else:
            _update_use(engine, token_id, now)
    except ServiceError:
        return


def _update_use(engine: Engine, token_id: int, now: str) -> None:
    with writing(engine) as connection:
        query = text("UPDATE tokens SET last_used_at = :now WHERE token_id = :token_id")
        connection.execute(query, {"now": now, "token_id": token_id})
