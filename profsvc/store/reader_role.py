"""A role of Postgres that may read the ``v1_`` views and do nothing else.

Views run with the rights of their owner, so the role needs none on the base tables. What Postgres gives to everybody
is taken back in this database: temporary tables, new tables in the schema, and the functions of `CLOSED`, which write,
wait, lock or run other SQL even in a transaction that only reads. The owner of the store keeps them: ``pg_dump`` needs
some. Catalogs belong to a database, so other databases of the server are as they were.
"""

import re
import secrets
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from profsvc.errors import ServiceError, UsageError
from profsvc.store.engine import file_of, writing

CLOSED = (
    r"^(pg_(try_)?advisory_|lo_|lowrite$|loread$|pg_notify$|pg_logical_emit_message$|\w+_to_xml|set_config$|pg_sleep"
    r"|pg_(cancel|terminate)_backend$|pg_export_snapshot$)"
)
"""Names of functions of ``pg_catalog`` that readers may not call, as a regular expression."""

LIMITS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "60s",
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "60s",
}
"""Settings of the role; it may change these itself, so they guard against mistakes, not against malice."""

FIRM_LIMITS = {"temp_file_limit": "256MB"}
"""Settings that the role cannot change, and only a superuser can give."""

CONNECTIONS = 8
FACT = "reader "
NOT_ALLOWED = "42501"  # what Postgres calls insufficient privilege

_FUNCTIONS = """
    SELECT CAST(CAST(p.oid AS regprocedure) AS text) FROM pg_proc p
    WHERE p.pronamespace = CAST('pg_catalog' AS regnamespace) AND p.proname ~ :closed ORDER BY 1
"""
_VIEWS = "SELECT viewname FROM pg_views WHERE schemaname = current_schema() AND viewname ~ '^v1_' ORDER BY 1"
# What a role can do beside reading the views, a sentence each.
_DOORS = """
    SELECT 'it is ' || a.word FROM pg_roles r, LATERAL (VALUES (r.rolsuper, 'a superuser'),
        (r.rolcreaterole, 'able to make roles'), (r.rolcreatedb, 'able to make databases'),
        (r.rolreplication, 'able to copy the server'), (r.rolbypassrls, 'above row security')) a (has, word)
    WHERE r.rolname = :role AND a.has
    UNION ALL
    SELECT 'it belongs to the role ' || pg_get_userbyid(m.roleid) FROM pg_auth_members m
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
    """A role as it was made: its password where it is new, and what could not be closed to it."""

    name: str
    password: str | None
    url: str
    open_doors: list[str]


def create_reader(engine: Engine, name: str, *, rotate: bool = False) -> Reader:
    """Make a role that may only read the views, or set one right again; with ``rotate`` it gets a new password.

    Raises `UsageError` for SQLite, which has no roles, and for a role that this store did not make.
    """
    _check(engine, name)
    with writing(engine) as connection:
        known = connection.execute(text("SELECT 1 FROM facts WHERE name = :name"), {"name": f"{FACT}{name}"}).first()
        exists = connection.execute(text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": name}).first()
        if exists and not known:
            raise UsageError(f"the role {name!r} is there already and is not a reader of this store; give another name")
        password = secrets.token_urlsafe(24) if rotate or not exists else None
        _define(connection, name, password, new=not exists)
        if not known:
            connection.execute(text("INSERT INTO facts (name, value) VALUES (:name, '')"), {"name": f"{FACT}{name}"})
        grant(connection)
        close_doors(connection, name)
        left = open_doors(connection, name)
    url = engine.url.set(drivername="postgresql", username=name, password=password)
    return Reader(name, password, url.render_as_string(hide_password=False), left)


def _check(engine: Engine, name: str) -> None:
    if file_of(engine) is not None:
        raise UsageError(
            f"{file_of(engine)} is a SQLite file, which has no roles: who can open it can read all of it; "
            "give a copy of it away instead: profsvc db backup FILE"
        )
    if not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", name):
        raise UsageError(
            f"{name!r} cannot be a role: up to 63 lower case letters, digits and _, not beginning with pg_"
        )


def quoted(connection: Connection, name: str) -> str:
    """Return a name as it stands in SQL."""
    return connection.dialect.identifier_preparer.quote_identifier(name)


def _define(connection: Connection, name: str, password: str | None, *, new: bool) -> None:
    """Make the role or set its attributes again; the server only ever sees a hash of the password."""
    role, secret = quoted(connection, name), ""
    if password is not None:
        driver: Any = connection.connection.driver_connection
        hashed = driver.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256")
        secret = f" PASSWORD '{hashed.decode()}'"
    rights = f"LOGIN NOINHERIT CONNECTION LIMIT {CONNECTIONS}{secret}"
    if not _allowed(connection, f"{'CREATE' if new else 'ALTER'} ROLE {role} {rights}"):
        user = connection.engine.url.username
        raise ServiceError(f"the user {user!r} may not make or change the role {name!r}; run it as a superuser")
    for setting, value in LIMITS.items():
        connection.exec_driver_sql(f"ALTER ROLE {role} SET {setting} = '{value}'")


def _allowed(connection: Connection, statement: str) -> bool:
    """Run a statement if this user may, and tell whether it might."""
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", "") != NOT_ALLOWED:
            raise
        return False
    return True


def readers(connection: Connection) -> list[str]:
    """Return the roles that were made to read this store, as far as the server has them."""
    query = text("SELECT r.rolname FROM facts f JOIN pg_roles r ON f.name = :fact || r.rolname ORDER BY 1")
    return list(connection.execute(query, {"fact": FACT}).scalars())


def grant(connection: Connection) -> None:
    """Let the readers of this store read its views, which lose their grants whenever they are made anew."""
    database, schema, owner = _here(connection)
    # The owner may become a reader, to answer SQL of users as one, and does not have its rights beside its own.
    newer = connection.execute(text("SELECT CAST(current_setting('server_version_num') AS int) >= 160000")).scalar()
    options = " WITH INHERIT FALSE, SET TRUE" if newer else ""
    views = [quoted(connection, view) for view in connection.execute(text(_VIEWS)).scalars()]
    for role in [quoted(connection, name) for name in readers(connection)]:
        _allowed(connection, f"GRANT CONNECT ON DATABASE {database} TO {role}")
        _allowed(connection, f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        _allowed(connection, f"GRANT {role} TO {owner}{options}")
        connection.exec_driver_sql(f"GRANT SELECT ON {', '.join(views)} TO {role}")


def _here(connection: Connection) -> list[str]:
    """Return the names of the database, of the schema and of the owner of the store, as they stand in SQL."""
    query = (
        "SELECT current_database(), current_schema(), pg_get_userbyid(relowner) FROM pg_class"
        " WHERE relname = 'runs' AND relnamespace = CAST(current_schema() AS regnamespace)"
    )
    return [quoted(connection, str(name)) for name in connection.execute(text(query)).one()]


def close_doors(connection: Connection, role: str) -> None:
    """Take from everybody in this database what readers must not have; the owner of the store keeps it.

    Where this user may not, nothing happens: `open_doors` tells.
    """
    database, schema, owner = _here(connection)
    _allowed(connection, f"GRANT TEMP ON DATABASE {database} TO {owner}")
    _allowed(connection, f"REVOKE TEMP, CREATE ON DATABASE {database} FROM PUBLIC")
    _allowed(connection, f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC")
    for setting, value in FIRM_LIMITS.items():
        _allowed(connection, f"ALTER ROLE {quoted(connection, role)} SET {setting} = '{value}'")
        # The owner answers SQL of users in its own session, where settings of the reader's are not taken.
        _allowed(connection, f"GRANT SET ON PARAMETER {setting} TO {owner}")
    if connection.execute(text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")).scalar_one():
        functions = ", ".join(connection.execute(text(_FUNCTIONS), {"closed": CLOSED}).scalars())
        connection.exec_driver_sql(f"GRANT EXECUTE ON FUNCTION {functions} TO {owner}")
        connection.exec_driver_sql(f"REVOKE EXECUTE ON FUNCTION {functions} FROM PUBLIC")


def open_doors(connection: Connection, role: str) -> list[str]:
    """Return what a role can do in this database beside reading the views, a sentence each; none if all is right."""
    firm = [f"{name}=" for name in FIRM_LIMITS]
    query = "SELECT coalesce(rolconfig, '{}') FROM pg_roles WHERE rolname = :role"
    given = connection.execute(text(query), {"role": role}).scalar_one()
    found = list(connection.execute(text(_DOORS), {"role": role, "closed": CLOSED}).scalars())
    return sorted(found + [f"it has no {name[:-1]}" for name in firm if not any(g.startswith(name) for g in given)])
