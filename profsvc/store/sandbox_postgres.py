"""SQL of a user on a Postgres store: checked by what the server itself understood, run by a role that may only look.

Three things stand between a query and the store, and each holds without the others:

* The server parses the query into a temporary view, which runs nothing and is rolled back. Its stored tree names
  every relation and function that the query would touch, by number, whatever the text looked like. Relations must be
  views of ours. Functions must be Postgres's own and unable to change anything (immutable), or be named in ``OPEN``.
* It then runs in a transaction that is read-only, behind a named cursor, which takes one SELECT and nothing else.
* Where there is a role that may only read the views (``profsvc db create-reader``), the transaction takes it. A
  superuser must: nothing of the above would keep one from the files of the server if it failed.

A user who is that role itself may make no view; then the role's rights are looked at instead.

A value can have 1 GB inside the server, which no setting changes; it does not leave it, for a row must be small. How
much memory a query takes there is held by `profsvc.store.sandbox_memory`, as far as can be.
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
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from profsvc.errors import ProfsvcError, ServiceError, UsageError
from profsvc.store import sandbox_memory as memory
from profsvc.store import sandbox_rules as rules
from profsvc.store.engine import explained
from profsvc.store.reader_role import CLOSED as CLOSED_TO_READERS
from profsvc.store.views import VIEWS


class _Number(Loader):
    """An exact number as the nearest that a spreadsheet, JSON and SQLite have."""

    def load(self, data: Buffer) -> int | float | str:
        text = bytes(data).decode()
        if len(text) < MOST_DIGITS and text.lstrip("-").isdigit() and -(2**63) <= (whole := int(text)) < 2**63:
            return whole
        number = float(text)
        # What no float holds stays as it is printed.
        return text if math.isinf(number) and "Infinity" not in text else number


Driver = psycopg.Connection[tuple[Any, ...]]

PLAIN = {16, 17, 20, 21, 23, 25, 26, 700, 701, 1043}  # bool, bytea, int8, int2, int4, text, oid, floats, varchar
LOADERS: dict[int, type[Loader]] = {1700: _Number}  # everything else comes as the text that Postgres prints

# Functions that may be called though Postgres does not promise that they change nothing and give the same every time.
OPEN = r"""(?x)^(
    age | now | clock_timestamp | statement_timestamp | transaction_timestamp | make_timestamptz | overlaps | in_range
    | date_(add|part|subtract|trunc) | extract | time | timetz | timestamp | timestamptz | date | timezone
    | (date|timestamp|timestamptz)_(cmp|eq|ge|gt|le|lt|ne)_\w+ | timestamptz_(mi|pl)_interval | interval_pl_timestamptz
    | to_(char|date|json|jsonb|number|timestamp) | numeric | length | concat | concat_ws | anytextcat | textanycat
    | quote_(literal|nullable) | pg_typeof | array_to_(json|string) | row_to_json
    | jsonb?_(agg|object_agg)(_strict|_unique|_unique_strict)? | jsonb?_build_(array|object)
    | generate_series | random | random_normal | gen_random_uuid
)$"""
# Functions that may not be called though they are immutable: they make a large value of a small question, or parse XML.
CLOSED = r"^(repeat|lpad|rpad|array_fill|xml.*|xpath.*|range_agg)$"
CLOSED_NODES = {"XMLEXPR": "xmlparse", "TABLEFUNC": "xmltable"}
# Types that a query may use, and arrays of them. Others tell names of what is hidden (regclass), make a large value of
# a small question (bit(80000000), polygon(30000000, ...)), or are of no use for what the views hold.
TYPES = (
    *("bool", "bytea", "char", "name", "text", "varchar", "uuid", "json", "jsonb", "jsonpath", "record", "unknown"),
    *("int2", "int4", "int8", "oid", "float4", "float8", "numeric", "int4range", "int8range", "numrange", "daterange"),
    *("date", "time", "timetz", "timestamp", "timestamptz", "interval", "tsrange", "tstzrange"),
)
# pg_typeof, whose answer alone may be a name of a type.
_TYPE_OF = ":funcid 1619 :funcresulttype 2206"
_FUNCTION = re.compile(r":(?:funcid|opfuncid|aggfnoid|winfnoid|tsmhandler) (\d+)")
_RELATION = re.compile(r":relid (\d+)")
# Every field of a node that names types has it in its own name, one or a list; what limits a type is no type.
_TYPE = re.compile(r":(?!\w*typmod)\w*(?i:typ)\w* (?:\(o )?(\d+(?: \d+)*)")
_RECURSIVE = ":cterecursive true"
_KEEPS_ALL = ":setOperations {SETOPERATIONSTMT :op 1 :all false "
_NODE = re.compile(r"\{([A-Z]+) ")

SETTINGS = {
    "lock_timeout": "1s",
    "work_mem": "16MB",
    "hash_mem_multiplier": "1.0",
    "max_parallel_workers_per_gather": "0",  # each worker would take the same memory again
    "jit": "off",  # compiling a plan is not interrupted
    "cursor_tuple_fraction": "1.0",
    "client_connection_check_interval": "1s",
}
SPILL = "256MB"
FETCH = 1024
"""Rows that the server gathers at once."""
MOST_DIGITS = 21
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
# A role that the session may become, that reads the views, and that reads no table.
_READER = """
    SELECT r.rolname FROM pg_roles r
    WHERE NOT r.rolsuper AND r.rolname <> current_user AND r.rolname !~ '^pg_' AND pg_has_role(current_user, r.oid, %s)
      AND has_table_privilege(r.oid, 'v1_runs', 'SELECT')
      AND NOT has_table_privilege(r.oid, 'runs', 'SELECT, INSERT, UPDATE, DELETE')
    ORDER BY r.oid LIMIT 1
"""
_FOREIGN = """
    SELECT p.proname FROM pg_proc p
    WHERE p.oid = ANY(%s) AND NOT (p.pronamespace = 'pg_catalog'::regnamespace AND
        (p.provolatile = 'i' AND p.proname !~ %s OR p.proname ~ %s))
    ORDER BY p.oid LIMIT 1
"""
_TREE = f"""
    SELECT ev_class::oid::bigint, ev_action::text FROM pg_rewrite WHERE ev_class = 'pg_temp.{CHECK}'::regclass
"""
# The rows of the views themselves are types too.
_TYPES = """
    SELECT coalesce(e.typname, t.typname) FROM pg_type t
    LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
    WHERE t.oid = ANY(%s) AND coalesce(e.typrelid, t.typrelid) <> ALL(%s) AND NOT (
        t.typnamespace = 'pg_catalog'::regnamespace AND coalesce(e.typname, t.typname) = ANY(%s)
    ) ORDER BY t.oid LIMIT 1
"""
# What a role that may make no view must not be able to do.
_SEALED = """
    SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
       AND p.proname ~ %s AND has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1 LIMIT 1
"""


@contextmanager
def opened(engine: Engine, text: str, params: Mapping[str, Any], seconds: float, most: int) -> Iterator[rules.Rows]:
    """Give up to ``most`` rows of the query as they come."""
    if len(text) > rules.MAX_SQL:
        raise rules.too_large(f"{len(text)} characters")
    text = text.strip().removesuffix(";")
    deadline, nonce = time.monotonic() + seconds, secrets.token_hex(8)
    # A connection of its own, dropped at the end: nothing that a query changes in a session outlives it.
    with (
        _fresh(engine) as driver,
        memory.bounded(driver) as swollen,
        rules.ending(seconds, lambda: _cut(driver)) as ended,
    ):

        def error(seen: Exception) -> ProfsvcError:
            if swollen():
                return rules.spent()
            return rules.late(seconds) if ended() else _explained(seen, seconds, nonce, engine)

        try:
            _check(driver, text, params, seconds)
            columns = _declare(driver, text, params, deadline - time.monotonic(), nonce)
        except (psycopg.Error, UnicodeError) as seen:
            raise error(seen) from None
        yield rules.Rows(columns, _chunks(driver, most, deadline, error))


@contextmanager
def _fresh(engine: Engine) -> Iterator[Driver]:
    try:
        pooled = engine.raw_connection()
    except (DBAPIError, psycopg.Error) as error:
        words = str(error.orig if isinstance(error, DBAPIError) else error)
        raise explained(words, engine.url.render_as_string(hide_password=True)) from None
    try:
        yield cast(Driver, pooled.driver_connection)
    finally:
        pooled.invalidate()


def _cut(driver: Driver) -> None:
    """End a conversation from another thread: whoever waits for the server gets an error."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(driver.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _check(driver: Driver, text: str, params: Mapping[str, Any], seconds: float) -> None:
    """Refuse a query that would touch anything but the views, or call a function that could change something."""
    (known,) = _one(driver, "SELECT to_regclass('v1_runs') IS NOT NULL")
    if not known:
        raise ServiceError("the database has no views of this program; run: profsvc --store URL db upgrade")
    _set(driver, {"lock_timeout": "1s"}, seconds)
    _parse(driver, _numbered(text, params)[0])
    role, is_superuser, may_make_views, _ = _one(driver, _ROLE)
    if is_superuser and _reader(driver) is None:
        raise ServiceError(
            f"the role {role!r} is a superuser of the server, who is not let near SQL of users; make a role that may "
            "only read: profsvc db create-reader NAME, or connect as a plain role"
        )
    if not may_make_views:
        if found := driver.execute(_SEALED, (CLOSED_TO_READERS,)).fetchone():
            raise ServiceError(
                f"the role {role!r} may call {found[0]!r}, so SQL of users is not answered through it; "
                "run as an administrator: profsvc db create-reader NAME, and connect as that role"
            )
        driver.rollback()
        return
    # The names of the columns do not matter, and two may be the same.
    view = f"CREATE TEMPORARY VIEW {CHECK} AS SELECT 1 AS one FROM ({rules.TOKEN.sub(_null, text)}\n) AS q"
    try:
        driver.execute(view.encode(), binary=True)  # binary: the protocol that takes one statement and no more
    except errors.SyntaxError:  # whole by itself, yet nothing to select from
        raise UsageError(rules.ONLY_SELECT) from None
    own, tree = _one(driver, _TREE)
    _judge(driver, tree, own)
    driver.rollback()


def _judge(driver: Driver, tree: str, own: int) -> None:
    """Refuse the tree of a query by the first thing in it that is not allowed.

    ``own`` is the number of the view that was made of the query: up to Postgres 15 its tree names it too.
    """
    named = driver.execute("SELECT v, to_regclass(v)::oid::bigint FROM unnest(%s::text[]) v", (list(VIEWS),))
    views = {number for _, number in named}
    for number in _numbers(_RELATION, tree):
        if number not in views | {own}:
            (name,) = _one(driver, "SELECT relname FROM pg_class WHERE oid = %s", number)
            raise rules.no_view(name, list(VIEWS))
    nodes = set(_NODE.findall(tree))
    if made := next((name for node, name in CLOSED_NODES.items() if node in nodes), None):
        raise rules.no_function(made)
    if found := driver.execute(_FOREIGN, (_numbers(_FUNCTION, tree), CLOSED, OPEN)).fetchone():
        raise rules.no_function(found[0])
    known, types = [number for number in views if number is not None], _numbers(_TYPE, tree.replace(_TYPE_OF, ""))
    if found := driver.execute(_TYPES, (types, known, list(TYPES))).fetchone():
        raise UsageError(f"the type {found[0]!r} is not allowed")
    if _RECURSIVE in tree and _KEEPS_ALL in tree:
        raise UsageError(
            "a recursive query with UNION keeps all its rows in memory; write UNION ALL, with a condition that ends it"
        )


def _numbers(pattern: re.Pattern[str], tree: str) -> list[int]:
    return sorted({int(number) for found in pattern.findall(tree) for number in found.split()} - {0})


def _declare(driver: Driver, text: str, params: Mapping[str, Any], seconds: float, nonce: str) -> list[str]:
    """Open the cursor in a transaction that may only look; return the names of the columns."""
    driver.read_only = True
    *_, may_limit_files = _one(driver, _ROLE)
    _set(driver, SETTINGS | {"temp_file_limit": SPILL} if may_limit_files else SETTINGS, seconds)
    if reader := _reader(driver):
        driver.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(reader)))
    numbered, values = _numbered(text, params)
    # A row that is too large fails in the server: by a cast of words that begin as no query can know.
    query = (
        f"DECLARE {CURSOR} NO SCROLL CURSOR FOR SELECT * FROM ({numbered}\n) AS q"
        f" WHERE CASE WHEN pg_column_size(q.*) <= {rules.MAX_VALUE} THEN true"
        f" ELSE CAST('{nonce} ' || pg_column_size(q.*) AS boolean) END"
    )
    cursor = psycopg.RawCursor(driver)
    ((plans,),) = cursor.execute(f"EXPLAIN (FORMAT JSON, VERBOSE) {query.partition(' FOR ')[2]}".encode(), values)
    if memory.gathered(plans[0]["Plan"]) > memory.GATHERED:
        raise rules.spent()
    cursor.execute(query.encode(), values, binary=True)
    columns = driver.execute(f"FETCH 0 FROM {CURSOR}").description or []
    for column in columns:
        if column.type_code not in PLAIN:
            driver.adapters.register_loader(column.type_code, LOADERS.get(column.type_code, TextLoader))
    return [column.name for column in columns]


def _chunks(
    driver: Driver, most: int, deadline: float, error: Callable[[Exception], ProfsvcError]
) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Yield the rows of the cursor a few at a time, as they come over the wire."""
    size = rules.CHUNK if psycopg.capabilities.has_stream_chunked() else 1
    left = most
    try:
        while left > 0:
            # The server gathers what is fetched at once before it sends any of it, and times every fetch by itself.
            asked = min(left, FETCH)
            _set(driver, {}, deadline - time.monotonic())
            rows = driver.cursor().stream(f"FETCH FORWARD {asked} FROM {CURSOR}".encode(), size=size)
            before = left
            while chunk := list(islice(rows, rules.CHUNK)):
                left -= len(chunk)
                yield chunk
            if before - left < asked:
                return
    except GeneratorExit:  # nobody wants the rest, which the driver would otherwise take from the wire
        _cut(driver)
        raise
    except psycopg.Error as seen:
        raise error(seen) from None


def _numbered(text: str, params: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the query with a number for every name of a value, and the values in that order.

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

    return rules.TOKEN.sub(number, text), [params[name] for name in names]


def _null(found: re.Match[str]) -> str:
    return found[0] if found["name"] is None else " NULL "


def _parse(driver: Driver, numbered: str) -> None:
    """Have the server read the query by itself, so that none passes that is whole only inside another's brackets."""
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
    """Return the role that the transaction can take to do nothing but look, if there is one."""
    right = "SET" if driver.info.server_version >= 160000 else "MEMBER"
    found = driver.execute(_READER, (right,)).fetchone()
    return None if found is None else str(found[0])


def _explained(error: Exception, seconds: float, nonce: str, engine: Engine) -> ProfsvcError:
    """Return the error to show for what Postgres said."""
    if not isinstance(error, psycopg.Error):
        return rules.wrong("it holds characters that are not Unicode")
    words = error.diag.message_primary or str(error).strip()
    match error:
        case errors.QueryCanceled():
            return rules.late(seconds)
        case errors.InvalidTextRepresentation() if found := re.search(rf"{nonce} (\d+)", words):
            return rules.too_large(f"a row of {found[1]} bytes")
        case errors.ConfigurationLimitExceeded():
            return rules.no_space()
        case errors.ReadOnlySqlTransaction() | errors.FeatureNotSupported() if "transaction" in words:
            return UsageError(rules.ONLY_SELECT)
        case errors.UndefinedTable() | errors.InsufficientPrivilege() if found := _NAMED.search(words):
            if found["function"]:
                return rules.no_function(found["function"])
            return rules.no_view((found["relation"] or found["object"]).strip('"'), list(VIEWS))
        case errors.DivisionByZero():
            return rules.zero(words)
        case errors.OutOfMemory():
            return rules.spent()
        case errors.ProgramLimitExceeded():
            return rules.too_large(words)
        case psycopg.OperationalError() if error.sqlstate is None or error.sqlstate[:2] in {"08", "53", "57"}:
            return explained(str(error), engine.url.render_as_string(hide_password=True))
    if "multiple commands" in words:
        return UsageError(rules.ONE_SELECT)
    return rules.wrong(words)
