"""The base table of tokens; a part of `profsvc.store.schema`. A token itself is kept nowhere, only its hash."""

from sqlalchemy import CheckConstraint

from profsvc.store.parts import row_id, table, text

tokens = table(
    "tokens",
    row_id("token_id"),
    text("name", nullable=False),
    text("hash", nullable=False, unique=True),
    text("scopes", nullable=False),
    text("project"),
    text("created_at", nullable=False),
    text("expires_at"),
    text("last_used_at"),
    text("revoked_at"),
    CheckConstraint("length(hash) = 64", name="hash"),
    sqlite_autoincrement=True,
)
