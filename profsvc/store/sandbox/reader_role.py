"""A Postgres role that may only read the ``v1_`` views.

Views run with the privileges of their owner, so the role needs none on the base tables. Default privileges of all
roles are revoked in this database: temporary tables, new tables in the schema, and the functions of
`DENIED_TO_READERS`, which write, wait, lock or run other SQL even in a read-only transaction. The owner of the store
keeps them, because ``pg_dump`` needs some. Other databases of the server are not affected.
"""

import re
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy.exc import DBAPIError

from profsvc.errors import ServiceError, UsageError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import writing
from profsvc.store.connection.urls import file_of

DENIED_TO_READERS = (
    r"^(pg_(try_)?advisory_|lo_|lowrite$|loread$|pg_notify$|pg_logical_emit_message$|\w+_to_xml|set_config$|pg_sleep"
    r"|pg_(cancel|terminate)_backend$|pg_export_snapshot$)"
)
"""Functions of ``pg_catalog`` that readers must not call, as a regular expression."""

SETTINGS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "60s",
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "60s",
}
"""Settings of the role. It can change them, so they only protect against mistakes."""

SUPERUSER_SETTINGS = {"temp_file_limit": "256MB"}
"""Settings that the role cannot change and only a superuser can set."""

MAX_CONNECTIONS = 8
FACT_PREFIX = "reader "
NOT_ALLOWED = "42501"  # SQLSTATE of insufficient privilege

_FUNCTIONS = """
    SELECT CAST(CAST(p.oid AS regprocedure) AS text) FROM pg_proc p
    WHERE p.pronamespace = CAST('pg_catalog' AS regnamespace) AND p.proname ~ :closed ORDER BY 1
"""
_VIEWS = "SELECT viewname FROM pg_views WHERE schemaname = current_schema() AND viewname ~ '^v1_' ORDER BY 1"
# Privileges of a role other than reading the views, one sentence per row.
_PRIVILEGES = """
    SELECT 'it is ' || a.word FROM pg_roles r, LATERAL (VALUES (r.rolsuper, 'a superuser'),
        (r.rolcreaterole, 'able to create roles'), (r.rolcreatedb, 'able to create databases'),
        (r.rolreplication, 'able to replicate the server'),
        (r.rolbypassrls, 'exempt from row-level security')) a (has, word)
    WHERE r.rolname = :role AND a.has
    UNION ALL
    SELECT 'it is a member of the role ' || pg_get_userbyid(m.roleid) FROM pg_auth_members m
    WHERE pg_get_userbyid(m.member) = :role
    UNION ALL
    SELECT 'it may ' || lower(p.word) || ' ' || c.relname FROM pg_class c
    CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) p (word)
    WHERE c.relnamespace = CAST(current_schema() AS regnamespace) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND NOT (c.relkind = 'v' AND c.relname ~ '^v1_' AND p.word = 'SELECT')
      AND has_table_privilege(:role, c.oid, p.word)
    UNION ALL
    SELECT c.relname || ' reads with the rights of who asks' FROM pg_class c
    WHERE c.relnamespace = CAST(current_schema() AS regnamespace) AND c.relkind = 'v' AND c.relname ~ '^v1_'
      AND CAST(c.reloptions AS text) ~ 'security_invoker=(true|on|1|yes)'
    UNION ALL
    SELECT 'it may make tables in the schema ' || n.nspname FROM pg_namespace n
    WHERE n.nspname !~ '^pg_' AND has_schema_privilege(:role, n.oid, 'CREATE')
    UNION ALL
    SELECT 'it may make ' || p.what || ' in the database' FROM (VALUES ('TEMP', 'temporary tables'),
        ('CREATE', 'schemas')) p (word, what) WHERE has_database_privilege(:role, current_database(), p.word)
    UNION ALL
    SELECT 'it may call ' || CAST(CAST(p.oid AS regprocedure) AS text) FROM pg_proc p
    WHERE p.pronamespace = CAST('pg_catalog' AS regnamespace) AND p.proname ~ :closed
      AND has_function_privilege(:role, p.oid, 'EXECUTE')
"""


class Reader(NamedTuple):
    """A reader role: its password if new, and the privileges that could not be revoked."""

    name: str
    password: str | None
    url: str
    excess_privileges: list[str]


def create_reader(engine: Engine, name: str, *, rotate: bool = False) -> Reader:
    """Create or repair a role that may only read the views; with ``rotate`` it gets a new password.

    Raise `UsageError` for SQLite, which lacks roles, and for a role that this store did not create.
    """
    check_role_name(engine, name)
    with writing(engine) as connection:
        known = connection.execute(
            text("SELECT 1 FROM facts WHERE name = :name"), {"name": f"{FACT_PREFIX}{name}"}
        ).first()
        exists = connection.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": name}).first()
        if exists and not known:
            raise UsageError(f"the role {name!r} exists and is not a reader of this store; give another name")
        password = secrets.token_urlsafe(24) if rotate or not exists else None
        create_or_alter(connection, name, password, SETTINGS, MAX_CONNECTIONS, new=not exists)
        if not known:
            connection.execute(
                text("INSERT INTO facts (name, value) VALUES (:name, '')"), {"name": f"{FACT_PREFIX}{name}"}
            )
        grant_views(connection)
        revoke_privileges(connection, name)
        left = excess_privileges(connection, name)
    url = engine.url.set(drivername="postgresql", username=name, password=password)
    return Reader(name, password, url.render_as_string(hide_password=False), left)


def check_role_name(engine: Engine, name: str) -> None:
    """Raise `UsageError` for a store without roles, and for a name that is none of a role."""
    if file_of(engine) is not None:
        raise UsageError(
            f"{file_of(engine)} is a SQLite file, which has no roles; file permissions decide who can read it; "
            "to share a copy, run: profsvc db backup FILE"
        )
    if not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", name):
        raise UsageError(
            f"{name!r} is not a valid role name; use up to 63 lower-case letters, digits and _, not starting with pg_"
        )


def quoted_identifier(connection: Connection, name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return connection.dialect.identifier_preparer.quote_identifier(name)


def create_or_alter(
    connection: Connection, name: str, password: str | None, settings: Mapping[str, str], connections: int, *, new: bool
) -> None:
    """Create the role or reset its attributes; only a hash of the password is sent to the server."""
    role, secret = quoted_identifier(connection, name), ""
    if password is not None:
        driver: Any = connection.connection.driver_connection
        hashed = driver.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256")
        secret = f" PASSWORD '{hashed.decode()}'"
    rights = f"LOGIN NOINHERIT CONNECTION LIMIT {connections}{secret}"
    if not execute_if_permitted(connection, f"{'CREATE' if new else 'ALTER'} ROLE {role} {rights}"):
        user = connection.engine.url.username
        raise ServiceError(f"the user {user!r} may not create or change the role {name!r}; run it as a superuser")
    for setting, value in settings.items():
        connection.exec_driver_sql(f"ALTER ROLE {role} SET {setting} = '{value}'")


def execute_if_permitted(connection: Connection, statement: str) -> bool:
    """Run a statement; return False if this user lacks the privilege."""
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", "") != NOT_ALLOWED:
            raise
        return False
    return True


def readers(connection: Connection) -> list[str]:
    """Return the reader roles of this store that exist on the server."""
    query = text("SELECT r.rolname FROM facts f JOIN pg_roles r ON f.name = :fact || r.rolname ORDER BY 1")
    return list(connection.execute(query, {"fact": FACT_PREFIX}).scalars())


def grant_views(connection: Connection) -> None:
    """Grant the views to the readers of this store; views lose their grants when they are created again."""
    database, schema, owner = location(connection)
    # The owner can switch to a reader role to run SQL of users, but does not inherit its privileges.
    newer = connection.execute(text("SELECT CAST(current_setting('server_version_num') AS int) >= 160000")).scalar()
    options = " WITH INHERIT FALSE, SET TRUE" if newer else ""
    views = [quoted_identifier(connection, view) for view in connection.execute(text(_VIEWS)).scalars()]
    for role in [quoted_identifier(connection, name) for name in readers(connection)]:
        execute_if_permitted(connection, f"GRANT CONNECT ON DATABASE {database} TO {role}")
        execute_if_permitted(connection, f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        execute_if_permitted(connection, f"GRANT {role} TO {owner}{options}")
        connection.exec_driver_sql(f"GRANT SELECT ON {', '.join(views)} TO {role}")


def location(connection: Connection) -> list[str]:
    """Return database, schema and owner of the store as quoted SQL identifiers."""
    query = (
        "SELECT current_database(), current_schema(), pg_get_userbyid(relowner) FROM pg_class"
        " WHERE relname = 'runs' AND relnamespace = CAST(current_schema() AS regnamespace)"
    )
    return [quoted_identifier(connection, str(name)) for name in connection.execute(text(query)).one()]


def revoke_privileges(connection: Connection, role: str) -> None:
    """Revoke from all roles of this database what readers must not have; the owner of the store keeps it.

    Statements without the necessary privilege are skipped; `excess_privileges` reports what is left.
    """
    database, schema, owner = location(connection)
    execute_if_permitted(connection, f"GRANT TEMP ON DATABASE {database} TO {owner}")
    execute_if_permitted(connection, f"REVOKE TEMP, CREATE ON DATABASE {database} FROM PUBLIC")
    execute_if_permitted(connection, f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC")
    for setting, value in SUPERUSER_SETTINGS.items():
        execute_if_permitted(connection, f"ALTER ROLE {quoted_identifier(connection, role)} SET {setting} = '{value}'")
        # The owner runs SQL of users in its own session, where the settings of the reader do not apply.
        execute_if_permitted(connection, f"GRANT SET ON PARAMETER {setting} TO {owner}")
    if connection.execute(text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")).scalar_one():
        functions = ", ".join(connection.execute(text(_FUNCTIONS), {"closed": DENIED_TO_READERS}).scalars())
        connection.exec_driver_sql(f"GRANT EXECUTE ON FUNCTION {functions} TO {owner}")
        connection.exec_driver_sql(f"REVOKE EXECUTE ON FUNCTION {functions} FROM PUBLIC")


def excess_privileges(connection: Connection, role: str) -> list[str]:
    """Return the privileges of a role other than reading the views, one sentence each; empty if there are none."""
    firm = [f"{name}=" for name in SUPERUSER_SETTINGS]
    query = "SELECT coalesce(rolconfig, '{}') FROM pg_roles WHERE rolname = :role"
    given = connection.execute(text(query), {"role": role}).scalar_one()
    found = list(connection.execute(text(_PRIVILEGES), {"role": role, "closed": DENIED_TO_READERS}).scalars())
    missing = [f"it lacks the setting {name[:-1]}" for name in firm if not any(g.startswith(name) for g in given)]
    return sorted(found + missing)
