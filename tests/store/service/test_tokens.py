from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, text

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.service import tokens


def test_a_token_opens_what_it_was_made_for(engine: Engine) -> None:
    assert not store.requires_token(engine)
    token = store.create_token(engine, "ci", ["upload", "read"], project="lab")
    assert token.startswith("psvc_")
    assert len(token) == 5 + 64
    grant = store.find_grant(engine, token)
    assert grant == store.Grant(1, frozenset({"upload", "read"}), "lab")
    assert grant.allows("read")
    assert not grant.allows("sql")
    assert store.requires_token(engine)
    assert store.create_token(engine, "ci", ["read"]) != token


def test_a_token_itself_is_kept_nowhere(engine: Engine) -> None:
    token = store.create_token(engine, "ci", ["admin"])
    with reading(engine) as connection:
        (row,) = connection.execute(text("SELECT * FROM tokens")).mappings()
    assert not [value for value in row.values() if str(token)[5:15] in str(value)]
    assert set(store.list_tokens(engine)[0]) == {
        *("token_id", "name", "scopes", "project", "created_at", "expires_at", "last_used_at", "revoked_at", "active")
    }
    assert store.find_grant(engine, row["hash"]) is None
    assert store.find_grant(engine, f"psvc_{row['hash']}") is None


def test_what_is_like_a_token_opens_nothing(engine: Engine) -> None:
    token = store.create_token(engine, "ci", ["admin"])
    like = (
        token.upper(),
        token[:-1],
        token + "0",
        token[5:],
        f" {token}",
        token.replace("psvc", "psvd"),
        token[:-1] + "g",
    )
    for text_of_it in (*like, "", "psvc_"):
        assert store.find_grant(engine, text_of_it) is None
    assert store.find_grant(engine, token) is not None


def test_a_token_ends_when_it_said_and_when_it_is_revoked(engine: Engine) -> None:
    token = store.create_token(engine, "short", ["read"], days=0.5)
    (row,) = store.list_tokens(engine)
    assert row["active"] == 1
    lives = datetime.fromisoformat(row["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=11.9) < lives <= timedelta(hours=12)
    with writing(engine) as connection:
        connection.execute(text("UPDATE tokens SET expires_at = '2020-01-01T00:00:00Z'"))
    assert store.find_grant(engine, token) is None
    assert store.list_tokens(engine)[0]["active"] == 0
    other = store.create_token(engine, "other", ["read"])
    store.revoke_token(engine, "other")
    assert store.find_grant(engine, other) is None
    assert store.requires_token(engine)
    with pytest.raises(NotFoundError, match="no active token named 'other'"):
        store.revoke_token(engine, "other")


def test_tokens_are_revoked_by_name_or_number(engine: Engine) -> None:
    for _ in range(2):
        store.create_token(engine, "ci", ["read"])
    with pytest.raises(UsageError, match="names the tokens 1, 2; say which"):
        store.revoke_token(engine, "ci")
    assert store.revoke_token(engine, "2")["token_id"] == 2
    assert [row["active"] for row in store.list_tokens(engine)] == [1, 0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scopes": []}, "needs scopes of upload, read, sql, admin"),
        ({"scopes": ["read", "write"]}, "given: write"),
        ({"name": " "}, "needs a name"),
        ({"scopes": ["sql"], "project": "lab"}, "SQL and administration reach every project"),
        ({"scopes": ["admin"], "project": "lab"}, "reach every project"),
        ({"days": 0}, "cannot live for 0 days"),
        ({"days": float("nan")}, "cannot live for nan days"),
        ({"days": 1e9}, "cannot live for 1e"),
    ],
)
def test_a_token_that_cannot_be_is_refused(engine: Engine, options: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        store.create_token(engine, **{"name": "a", "scopes": ["read"], **options})
    assert store.list_tokens(engine) == []


def test_the_last_use_is_written_now_and_then(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    token = store.create_token(engine, "ci", ["read"])
    store.find_grant(engine, token)
    used = store.list_tokens(engine)[0]["last_used_at"]
    assert used is not None
    written: list[int] = []
    monkeypatch.setattr(tokens, "_update_use", lambda *_: written.append(1))
    store.find_grant(engine, token)
    assert written == []
    monkeypatch.setattr(tokens, "MIN_USE_INTERVAL", timedelta(seconds=-2))
    store.find_grant(engine, token)
    assert written == [1]


def test_a_store_that_is_busy_is_not_waited_for(engine: Engine) -> None:
    token = store.create_token(engine, "ci", ["read"])
    if engine.dialect.name != "sqlite":
        return
    with _busy(engine):
        assert store.find_grant(engine, token) is not None
    assert store.list_tokens(engine)[0]["last_used_at"] is None


def _busy(engine: Engine):
    import threading
    from contextlib import contextmanager

    @contextmanager
    def held() -> Iterator[None]:
        go, begun = threading.Event(), threading.Event()

        def write() -> None:
            with writing(engine) as connection:
                connection.execute(text("UPDATE tokens SET name = 'x'"))
                begun.set()
                go.wait(10)

        thread = threading.Thread(target=write)
        thread.start()
        begun.wait(10)
        try:
            yield
        finally:
            go.set()
            thread.join()

    return held()
