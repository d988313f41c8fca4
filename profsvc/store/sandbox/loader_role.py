"""A Postgres role that may only load files and compute results, for workers elsewhere.

It reads and adds, and changes or deletes only where a new file or a new result replaces what was there. It sees no
tokens, schedules, reports or findings, and can neither delete an upload nor change the schema.
"""

import secrets

from profsvc.errors import UsageError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import writing
from profsvc.store.sandbox.reader_role import (
    Reader,
    check_role_name,
    create_or_alter,
    execute_if_permitted,
    location,
    quoted_identifier,
)

FACT_PREFIX = "loader "
MAX_CONNECTIONS = 256
SETTINGS = {"idle_in_transaction_session_timeout": "10min"}
CLOSED = (
    "tokens", "schedules", "slots", "deliveries", "reports", "findings", "finding_states", "finding_differences",
    "kernel_renames", "rename_decisions", "deleted_uploads",
)  # fmt: skip
READ_ONLY = ("facts", "alembic_version", "archives", "archived_values")
UPDATED = ("runs", "run_tags", "uploads", "sensors", "source_kernels", "devices")
DELETED = (
    "criteria", "potential", "models", "causes", "cause_totals", "criterion_totals", "power_windows",
    "power_coefficients", "power_models", "power_quality", "wall_time", "finished_parts", "twins", "counters",
    "predictions", "traces", "refusals",
)  # fmt: skip
"""Tables whose rows a new file or a new result replaces."""

# What this role needs of functions that no reader may call: one transaction stores some bytes at a time.
_FUNCTION = "pg_catalog.pg_advisory_xact_lock(bigint)"
_RELATIONS = """
    SELECT c.relname, c.relkind FROM pg_class c WHERE c.relnamespace = CAST(current_schema() AS regnamespace)
    AND c.relkind IN ('r', 'p', 'v', 'S') AND NOT c.relispartition ORDER BY 1
"""
_HELD = """
    SELECT c.relname, p.word FROM pg_class c CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'),
        ('TRUNCATE')) p (word)
    WHERE c.relnamespace = CAST(current_schema() AS regnamespace) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND has_table_privilege(:role, c.oid, p.word)
"""
_ATTRIBUTES = """
    SELECT 'it is ' || a.word FROM pg_roles r, LATERAL (VALUES (r.rolsuper, 'a superuser'),
        (r.rolcreaterole, 'able to create roles'), (r.rolcreatedb, 'able to create databases'),
        (r.rolreplication, 'able to replicate the server')) a (has, word)
    WHERE r.rolname = :role AND a.has
    UNION ALL
    SELECT 'it may make tables in the schema ' || n.nspname FROM pg_namespace n
    WHERE n.nspname !~ '^pg_' AND has_schema_privilege(:role, n.oid, 'CREATE')
    UNION ALL
    SELECT 'it is a member of the role ' || pg_get_userbyid(m.roleid) FROM pg_auth_members m
    WHERE pg_get_userbyid(m.member) = :role
"""


def create_loader(engine: Engine, name: str, *, rotate: bool = False) -> Reader:
    """Create or repair a role that may only load files and compute results; with ``rotate`` it gets a new password."""
    check_role_name(engine, name)
    with writing(engine) as connection:
        given = {"name": f"{FACT_PREFIX}{name}"}
        known = connection.execute(text("SELECT 1 FROM facts WHERE name = :name"), given).first()
        exists = connection.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": name}).first()
        if exists and not known:
            raise UsageError(f"the role {name!r} exists and is not a loader of this store; give another name")
        password = secrets.token_urlsafe(24) if rotate or not exists else None
        create_or_alter(connection, name, password, SETTINGS, MAX_CONNECTIONS, new=not exists)
        if not known:
            connection.execute(text("INSERT INTO facts (name, value) VALUES (:name, '')"), given)
        _, schema, _ = location(connection)
        execute_if_permitted(connection, f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC")
        grant_loading(connection)
        left = excess_privileges(connection, name)
    url = engine.url.set(drivername="postgresql", username=name, password=password)
    return Reader(name, password, url.render_as_string(hide_password=False), left)


def grant_loading(connection: Connection) -> None:
    """Grant the tables and views to the loaders of this store; new tables and views have no grants."""
    query = text("SELECT r.rolname FROM facts f JOIN pg_roles r ON f.name = :fact || r.rolname ORDER BY 1")
    loaders = list(connection.execute(query, {"fact": FACT_PREFIX}).scalars())
    if not loaders:
        return
    database, schema, _ = location(connection)
    relations = connection.execute(text(_RELATIONS)).all()
    for role in [quoted_identifier(connection, name) for name in loaders]:
        execute_if_permitted(connection, f"GRANT CONNECT ON DATABASE {database} TO {role}")
        execute_if_permitted(connection, f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        execute_if_permitted(connection, f"GRANT EXECUTE ON FUNCTION {_FUNCTION} TO {role}")
        for name, kind in relations:
            if rights := _rights(name, kind):
                kind_word = "SEQUENCE" if kind == "S" else "TABLE"
                of = quoted_identifier(connection, name)
                connection.exec_driver_sql(f"GRANT {', '.join(rights)} ON {kind_word} {of} TO {role}")


def _rights(name: str, kind: str) -> list[str]:
    """Return what a loader may do with a table, view or sequence."""
    if kind == "S":
        return [] if name.startswith(tuple(f"{table}_" for table in CLOSED)) else ["USAGE"]
    if kind == "v":
        return ["SELECT"] if name.startswith("v1_") else []
    if name in CLOSED:
        return []
    if name in READ_ONLY:
        return ["SELECT"]
    return [
        "SELECT", "INSERT", *(["UPDATE"] if name in UPDATED else []), *(["DELETE"] if name in DELETED else []),
    ]  # fmt: skip


def excess_privileges(connection: Connection, role: str) -> list[str]:
    """Return the privileges of a role beyond loading, one sentence each; empty if there are none."""
    kinds = {row.relname: row.relkind for row in connection.execute(text(_RELATIONS))}
    held = connection.execute(text(_HELD), {"role": role})
    excess = [f"it may {word.lower()} {name}" for name, word in held if word not in _rights(name, kinds.get(name, "r"))]
    return sorted([*excess, *connection.execute(text(_ATTRIBUTES), {"role": role}).scalars()])
