"""SQL of a user on a Postgres store: checked by what the server itself understood, run by a role that may only look.

Three things stand between a query and the store, and each holds without the others:

* The server parses the query into a temporary view, which runs nothing and is rolled back. Its stored tree names
  every relation and function that the query would touch, by number, whatever the text looked like. Relations must be
  views of ours. Functions must be Postgres's own and unable to change anything (immutable), or be named in
  `ALLOWED_FUNCTIONS`.
* It then runs in a transaction that is read-only, behind a named cursor, which takes one SELECT and nothing else.
* Where there is a role that may only read the views (``profsvc db create-reader``), the transaction takes it. A
  superuser must: nothing of the above would keep one from the files of the server if it failed.

A user who is that role itself may make no view; then the role's rights are looked at instead.

A value can have 1 GB inside the server, which no setting changes; it does not leave it, for a row must be small. How
much memory a query takes there is held by `profsvc.store.sandbox.postgres_memory`, as far as can be.
"""

import math
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, cast

import psycopg
from psycopg import errors, pq, sql
from psycopg.adapt import Buffer, Loader
from psycopg.types.string import TextLoader
from sqlalchemy.exc import DBAPIError

from profsvc.errors import ProfsvcError, ServiceError, UsageError
from profsvc.store.connection.errors import user_error
from profsvc.store.connection.replica import main_of
from profsvc.store.connection.sql import Engine
from profsvc.store.sandbox import postgres_memory as memory
from profsvc.store.sandbox import rules
from profsvc.store.sandbox.reader_role import DENIED_TO_READERS
from profsvc.store.schema.catalog import VIEWS


class _Number(Loader):
    """Loads exact numbers as the nearest int or float, which spreadsheets, JSON and SQLite support."""

    def load(self, data: Buffer) -> int | float | str:
        text = bytes(data).decode()
        if len(text) < MAX_INTEGER_CHARS and text.lstrip("-").isdigit() and -(2**63) <= (whole := int(text)) < 2**63:
            return whole
        number = float(text)
        # A number outside the range of floats stays a text.
        return text if math.isinf(number) and "Infinity" not in text else number


Driver = psycopg.Connection[tuple[Any, ...]]

NATIVE_TYPES = {16, 17, 20, 21, 23, 25, 26, 700, 701, 1043}  # bool, bytea, int8, int2, int4, text, oid, floats, varchar
LOADERS: dict[int, type[Loader]] = {1700: _Number}  # all other types come as the text that Postgres prints

# Functions that may be called although Postgres does not declare them immutable.
ALLOWED_FUNCTIONS = r"""(?x)^(
    age | now | clock_timestamp | statement_timestamp | transaction_timestamp | make_timestamptz | overlaps | in_range
    | date_(add|part|subtract|trunc) | extract | time | timetz | timestamp | timestamptz | date | timezone
    | (date|timestamp|timestamptz)_(cmp|eq|ge|gt|le|lt|ne)_\w+ | timestamptz_(mi|pl)_interval | interval_pl_timestamptz
    | to_(char|date|json|jsonb|number|timestamp) | numeric | length | concat | concat_ws | anytextcat | textanycat
    | quote_(literal|nullable) | pg_typeof | array_to_(json|string) | row_to_json
    | jsonb?_(agg|object_agg)(_strict|_unique|_unique_strict)? | jsonb?_build_(array|object)
    | generate_series | random | random_normal | gen_random_uuid
)$"""
# Immutable functions that must not be called: they create large values from small queries, or parse XML.
DENIED_FUNCTIONS = r"^(repeat|lpad|rpad|array_fill|xml.*|xpath.*|range_agg)$"
DENIED_NODES = {"XMLEXPR": "xmlparse", "TABLEFUNC": "xmltable"}
# Types that a query may use, and arrays of them. Others reveal hidden names (regclass), create large values from small
# queries (bit(80000000), polygon(30000000, ...)), or are not needed for the data of the views.
ALLOWED_TYPES = (
    *("bool", "bytea", "char", "name", "text", "varchar", "uuid", "json", "jsonb", "jsonpath", "record", "unknown"),
    *("int2", "int4", "int8", "oid", "float4", "float8", "numeric", "int4range", "int8range", "numrange", "daterange"),
    *("date", "time", "timetz", "timestamp", "timestamptz", "interval", "tsrange", "tstzrange"),
)
# pg_typeof, the only function that may return a type name.
_TYPE_OF = ":funcid 1619 :funcresulttype 2206"
_FUNCTION = re.compile(r":(?:funcid|opfuncid|aggfnoid|winfnoid|tsmhandler) (\d+)")
_RELATION = re.compile(r":relid (\d+)")
# Every field with type numbers has "typ" in its name; fields with "typmod" contain modifiers, not types.
_TYPE = re.compile(r":(?!\w*typmod)\w*(?i:typ)\w* (?:\(o )?(\d+(?: \d+)*)")
_RECURSIVE = ":cterecursive true"
_KEEPS_ALL = ":setOperations {SETOPERATIONSTMT :op 1 :all false "
_NODE = re.compile(r"\{([A-Z]+) ")

SETTINGS = {
    "lock_timeout": "1s",
    "work_mem": "16MB",
    "hash_mem_multiplier": "1.0",
    "max_parallel_workers_per_gather": "0",  # each worker would need the same memory again
    "jit": "off",  # compiling a plan cannot be interrupted
    "cursor_tuple_fraction": "1.0",
    "client_connection_check_interval": "1s",
}
MAX_TEMP_FILES = "256MB"
ROWS_PER_FETCH = 1024
"""Maximum number of rows per fetch."""
MAX_INTEGER_CHARS = 21
CURSOR = "profsvc_answer"
CHECK = "profsvc_check"
_NAMED = re.compile(
    r"""relation\ (?P<relation>"[^"]*")|for\ (?:table|view|relation|sequence)\ (?P<object>\S+)
    |for\ function\ (?P<function>\S+)""",
    re.VERBOSE,
)

_ROLE = """
    SELECT r.rolname, r.rolsuper, has_database_privilege(current_database(), 'TEMP'),
           has_parameter_privilege('temp_file_limit', 'SET')
    FROM pg_roles r WHERE r.rolname = current_user
"""
# A role that the session can switch to, which may read the views but no table.
_READER = """
    SELECT r.rolname FROM pg_roles r
    WHERE NOT r.rolsuper AND r.rolname <> current_user AND r.rolname !~ '^pg_' AND pg_has_role(current_user, r.oid, %s)
      AND has_table_privilege(r.oid, 'v1_runs', 'SELECT')
      AND NOT has_table_privilege(r.oid, 'runs', 'SELECT, INSERT, UPDATE, DELETE')
    ORDER BY r.oid LIMIT 1
"""
_DENIED_FUNCTION = """
    SELECT p.proname FROM pg_proc p
    WHERE p.oid = ANY(%s) AND NOT (p.pronamespace = 'pg_catalog'::regnamespace AND
        (p.provolatile = 'i' AND p.proname !~ %s OR p.proname ~ %s))
    ORDER BY p.oid LIMIT 1
"""
_TREE = f"""
    SELECT ev_class::oid::bigint, ev_action::text FROM pg_rewrite WHERE ev_class = 'pg_temp.{CHECK}'::regclass
"""
# The row types of the views are types as well.
_TYPES = """
    SELECT coalesce(e.typname, t.typname) FROM pg_type t
    LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
    WHERE t.oid = ANY(%s) AND coalesce(e.typrelid, t.typrelid) <> ALL(%s) AND NOT (
        t.typnamespace = 'pg_catalog'::regnamespace AND coalesce(e.typname, t.typname) = ANY(%s)
    ) ORDER BY t.oid LIMIT 1
"""
# Privileges that a role without the right to create views must not have.
_CALLABLE_DENIED = """
    SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
       AND p.proname ~ %s AND has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1 LIMIT 1
"""


@contextmanager
def stream_rows(
    engine: Engine, text: str, params: Mapping[str, Any], seconds: float, most: int
) -> Iterator[rules.Rows]:
    """Yield a result with up to ``most`` rows of the query as they arrive."""
    if len(text) > rules.MAX_SQL_CHARS:
        raise rules.too_large(f"{len(text)} characters")
    text = text.strip().removesuffix(";")
    deadline, nonce = time.monotonic() + seconds, secrets.token_hex(8)
    # A separate connection, closed at the end, so that changes of a query to its session do not outlive it.
    with (
        _own_connection(engine) as driver,
        memory.limit_memory(driver) as swollen,
        rules.kill_timer(seconds, lambda: _cut(driver)) as ended,
    ):

        def error(seen: Exception) -> ProfsvcError:
            if swollen():
                return rules.resource_error()
            return rules.timeout_error(seconds) if ended() else _user_error(seen, seconds, nonce, engine)

        try:
            if (main := main_of(engine)) is engine:
                _check(driver, text, params, seconds)
            else:  # a replica can make no view, but has the same relations and functions under the same numbers
                with _own_connection(main) as checking:
                    _check(checking, text, params, seconds)
            columns = _declare(driver, text, params, deadline - time.monotonic(), nonce)
        except (psycopg.Error, UnicodeError) as seen:
            raise error(seen) from None
        yield rules.Rows(columns, _chunks(driver, most, deadline, error))


@contextmanager
def _own_connection(engine: Engine) -> Iterator[Driver]:
    try:
        pooled = engine.raw_connection()
    except (DBAPIError, psycopg.Error) as error:
        words = str(error.orig if isinstance(error, DBAPIError) else error)
        raise user_error(words, engine.url.render_as_string(hide_password=True)) from None
    try:
        yield cast(Driver, pooled.driver_connection)
    finally:
        pooled.invalidate()


def _cut(driver: Driver) -> None:
    """Shut down a connection from another thread, so that a call waiting for the server raises an error."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(driver.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _check(driver: Driver, text: str, params: Mapping[str, Any], seconds: float) -> None:
    """Raise an error for a query that reads more than the views or calls a function that may change something."""
    (known,) = _one(driver, "SELECT to_regclass('v1_runs') IS NOT NULL")
    if not known:
        raise ServiceError("the database lacks the views of this program; run: profsvc --store URL db upgrade")
    _set(driver, {"lock_timeout": "1s"}, seconds)
    _parse(driver, _numbered(text, params)[0])
    role, is_superuser, may_make_views, _ = _one(driver, _ROLE)
    if is_superuser and _reader(driver) is None:
        raise ServiceError(
            f"the role {role!r} is a superuser, and profsvc does not run SQL of users as a superuser; connect as "
            "another role, or create a read-only role with: profsvc db create-reader NAME"
        )
    if not may_make_views:
        if found := driver.execute(_CALLABLE_DENIED, (DENIED_TO_READERS,)).fetchone():
            raise ServiceError(
                f"the role {role!r} may call {found[0]!r}, so SQL of users is not answered through it; "
                "run as an administrator: profsvc db create-reader NAME, and connect as that role"
            )
        driver.rollback()
        return
    # Column names do not matter here, and two columns may share one.
    nameless = rules.PARAMETER_OR_TEXT.sub(_null_for_name, text)
    view = f"CREATE TEMPORARY VIEW {CHECK} AS SELECT 1 AS one FROM ({nameless}\n) AS q"
    try:
        driver.execute(view.encode(), binary=True)  # binary: this protocol accepts only one statement
    except errors.SyntaxError:  # a complete statement, but not a select
        raise UsageError(rules.ONLY_SELECT) from None
    own, tree = _one(driver, _TREE)
    _check_tree(driver, tree, own)
    driver.rollback()


def _check_tree(driver: Driver, tree: str, own: int) -> None:
    """Raise an error for the first part of a query tree that is not allowed.

    ``own`` is the number of the view created from the query; up to Postgres 15 the tree contains it as well.
    """
    named = driver.execute("SELECT v, to_regclass(v)::oid::bigint FROM unnest(%s::text[]) v", (list(VIEWS),))
    views = {number for _, number in named}
    for number in _ids_in_tree(_RELATION, tree):
        if number not in views | {own}:
            (name,) = _one(driver, "SELECT relname FROM pg_class WHERE oid = %s", number)
            raise rules.no_view(name, list(VIEWS))
    nodes = set(_NODE.findall(tree))
    if made := next((name for node, name in DENIED_NODES.items() if node in nodes), None):
        raise rules.no_function(made)
    if found := driver.execute(
        _DENIED_FUNCTION, (_ids_in_tree(_FUNCTION, tree), DENIED_FUNCTIONS, ALLOWED_FUNCTIONS)
    ).fetchone():
        raise rules.no_function(found[0])
    known, types = [number for number in views if number is not None], _ids_in_tree(_TYPE, tree.replace(_TYPE_OF, ""))
    if found := driver.execute(_TYPES, (types, known, list(ALLOWED_TYPES))).fetchone():
        raise UsageError(f"the type {found[0]!r} is not allowed")
    if _RECURSIVE in tree and _KEEPS_ALL in tree:
        raise UsageError("a recursive query with UNION keeps all rows in memory; use UNION ALL with an end condition")


def _ids_in_tree(pattern: re.Pattern[str], tree: str) -> list[int]:
    return sorted({int(number) for found in pattern.findall(tree) for number in found.split()} - {0})


def _declare(driver: Driver, text: str, params: Mapping[str, Any], seconds: float, nonce: str) -> list[str]:
    """Open the cursor in a read-only transaction; return the column names."""
    driver.read_only = True
    *_, may_limit_files = _one(driver, _ROLE)
    _set(driver, SETTINGS | {"temp_file_limit": MAX_TEMP_FILES} if may_limit_files else SETTINGS, seconds)
    if reader := _reader(driver):
        driver.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(reader)))
    numbered, values = _numbered(text, params)
    # A row that is too large fails in the server, by casting a text whose beginning no query can guess.
    query = (
        f"DECLARE {CURSOR} NO SCROLL CURSOR FOR SELECT * FROM ({numbered}\n) AS q"
        f" WHERE CASE WHEN pg_column_size(q.*) <= {rules.MAX_VALUE_BYTES} THEN true"
        f" ELSE CAST('{nonce} ' || pg_column_size(q.*) AS boolean) END"
    )
    cursor = psycopg.RawCursor(driver)
    ((plans,),) = cursor.execute(f"EXPLAIN (FORMAT JSON, VERBOSE) {query.partition(' FOR ')[2]}".encode(), values)
    if memory.aggregate_bytes(plans[0]["Plan"]) > memory.MAX_AGGREGATE_BYTES:
        raise rules.resource_error()
    cursor.execute(query.encode(), values, binary=True)
    columns = driver.execute(f"FETCH 0 FROM {CURSOR}").description or []
    for column in columns:
        if column.type_code not in NATIVE_TYPES:
            driver.adapters.register_loader(column.type_code, LOADERS.get(column.type_code, TextLoader))
    return [column.name for column in columns]


def _chunks(
    driver: Driver, most: int, deadline: float, error: Callable[[Exception], ProfsvcError]
) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Yield the rows of the cursor in small batches, as they arrive."""
    size = rules.ROWS_PER_CHUNK if psycopg.capabilities.has_stream_chunked() else 1
    left = most
    try:
        while left > 0:
            # The server collects all rows of a fetch before it sends them, and its timeout applies to each fetch alone.
            asked = min(left, ROWS_PER_FETCH)
            _set(driver, {}, deadline - time.monotonic())
            rows = driver.cursor().stream(f"FETCH FORWARD {asked} FROM {CURSOR}".encode(), size=size)
            before = left
            while chunk := list(islice(rows, rules.ROWS_PER_CHUNK)):
                left -= len(chunk)
                yield chunk
            if before - left < asked:
                return
    except GeneratorExit:  # discard the remaining rows, which the driver would otherwise receive
        _cut(driver)
        raise
    except psycopg.Error as seen:
        raise error(seen) from None


def _numbered(text: str, params: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the query with numbered parameters instead of named ones, and the values in that order.

    >>> _numbered("select ':a', :b::text, x[1:2] from y where z = :a or w = :b", {"a": 1, "b": 2})
    ("select ':a', $1::text, x[1:2] from y where z = $2 or w = $1", [2, 1])
    """
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return found[0]
        if name not in params:
            raise rules.no_value(name)
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return rules.PARAMETER_OR_TEXT.sub(number, text), [params[name] for name in names]


def _null_for_name(found: re.Match[str]) -> str:
    return found[0] if found["name"] is None else " NULL "


def _parse(driver: Driver, numbered: str) -> None:
    """Let the server parse the query alone, so that text that is only complete inside brackets is rejected."""
    result = driver.pgconn.prepare(b"", numbered.encode())
    if result.status != pq.ExecStatus.COMMAND_OK:
        raise errors.error_from_result(result)


def _set(driver: Driver, settings: Mapping[str, str], seconds: float) -> None:
    milliseconds = f"{max(seconds * 1000, 1):.0f}"
    for name, value in {**settings, "statement_timeout": milliseconds}.items():
        driver.execute(f"SET LOCAL {name} = '{value}'".encode())


def _one(driver: Driver, query: str, *values: Any) -> tuple[Any, ...]:
    row = driver.execute(query.encode(), values or None).fetchone()
    assert row is not None
    return row


def _reader(driver: Driver) -> str | None:
    """Return a read-only role that the transaction can switch to; None if there is none."""
    right = "SET" if driver.info.server_version >= 160000 else "MEMBER"
    found = driver.execute(_READER, (right,)).fetchone()
    return None if found is None else str(found[0])


def _user_error(error: Exception, seconds: float, nonce: str, engine: Engine) -> ProfsvcError:
    """Return the error for an exception of Postgres."""
    if not isinstance(error, psycopg.Error):
        return rules.query_error("it contains characters that are not Unicode")
    words = error.diag.message_primary or str(error).strip()
    match error:
        case errors.QueryCanceled():
            return rules.timeout_error(seconds)
        case errors.InvalidTextRepresentation() if found := re.search(rf"{nonce} (\d+)", words):
            return rules.too_large(f"a row of {found[1]} bytes")
        case errors.ConfigurationLimitExceeded():
            return rules.no_space()
        case errors.ReadOnlySqlTransaction() | errors.FeatureNotSupported() if "transaction" in words:
            return UsageError(rules.ONLY_SELECT)
        case errors.UndefinedTable() | errors.InsufficientPrivilege() if found := _NAMED.search(words):
            if found["function"]:
                return rules.no_function(found["function"])
            name = (found["relation"] or found["object"]).strip('"')
            return (
                rules.view_not_granted(name) if found["object"] and name in VIEWS else rules.no_view(name, list(VIEWS))
            )
        case errors.DivisionByZero():
            return rules.division_error(words)
        case errors.OutOfMemory():
            return rules.resource_error()
        case errors.ProgramLimitExceeded():
            return rules.too_large(words)
        case psycopg.OperationalError() if error.sqlstate is None or error.sqlstate[:2] in {"08", "53", "57"}:
            return user_error(str(error), engine.url.render_as_string(hide_password=True))
    if "multiple commands" in words:
        return UsageError(rules.ONE_SELECT)
    return rules.query_error(words)
