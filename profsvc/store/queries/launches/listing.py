"""The launches of a run as people look through them: ordered, page by page, of all kernels or of one."""

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from profsvc.errors import UsageError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.queries.launches.largest import IDS_PER_QUERY, launch_rows
from profsvc.store.queries.launches.ordered import LaunchOrder
from profsvc.store.queries.time_limit import reading_with_timeout
from profsvc.store.queries.view_pages import MAX_OFFSET
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.view_definition import UPLOAD_ID_RANGE_SQL, text_of

Joins = tuple[str, ...]

_SHAPE: Joins = ("JOIN shapes h ON h.shape_id = l.shape_id",)
_KERNEL: Joins = (*_SHAPE, "JOIN kernels k ON k.kernel_id = h.kernel_id")
PLACE: Joins = ("JOIN places a ON a.place_id = l.place_id",)
_VERSION = "(SELECT r.version_id FROM runs r WHERE r.run_id = u.run_id)"
_BOUND: Joins = (
    "LEFT JOIN potential p ON p.run_id = u.run_id AND p.launch_id = l.launch_id AND p.kernel_id = 0"
    f" AND p.version_id = {_VERSION}",
)
_FIRST_CAUSE: Joins = (
    "LEFT JOIN causes s ON s.run_id = u.run_id AND s.launch_id = l.launch_id AND s.kernel_id = 0 AND s.rank = 1"
    f" AND s.version_id = {_VERSION}",
)
_COUNTER = (
    "LEFT JOIN counters v ON v.launch_id = l.launch_id AND v.counter_id ="
    " (SELECT x.text_id FROM texts x WHERE x.text = '{}')"
)
# Order -> what it sorts by, and the joins that this needs.
LAUNCH_ORDERS: Mapping[str, tuple[str, Joins]] = {
    "launch": ("l.launch_id", ()),
    "duration": ("l.duration_ns", ()),
    "kernel": ("k.kernel_short", _KERNEL),
    "potential": ("p.speedup", _BOUND),
    "ceiling": ("p.speedup_ceiling", _BOUND),
    "limit": (text_of("p.bound_id"), _BOUND),
    "saving": ("s.saving_ns", _FIRST_CAUSE),
    "compute": ("v.value", (_COUNTER.format("sol_sm_fraction"),)),
    "memory": ("v.value", (_COUNTER.format("sol_memory_fraction"),)),
}
# Field of `LaunchFilter` -> its condition, and the joins that this needs.
_CONDITIONS: Mapping[str, tuple[str, Joins]] = {
    "kernel_id": ("h.kernel_id = :kernel_id", _SHAPE),
    "kernel": ("lower(k.kernel) LIKE :kernel ESCAPE '\\'", _KERNEL),
    "device_id": ("a.device_id = :device_id", PLACE),
    "stream": ("a.stream = :stream", PLACE),
    "upload_id": ("u.upload_id = :upload_id", ()),
    "cause": (
        "l.launch_id IN (SELECT c.launch_id FROM runs r JOIN causes c ON c.run_id = r.run_id"
        " AND c.version_id = r.version_id JOIN cause_names q ON q.cause_id = c.cause_id"
        " WHERE r.run_id = :run_id AND c.kernel_id = 0 AND q.cause = :cause)",
        (),
    ),
}

# The launches of a cause, of kernels that are known by totals.
_CAUSED = (
    "SELECT coalesce(sum(t.launches), 0) FROM runs r"
    " JOIN cause_totals t ON t.run_id = r.run_id AND t.version_id = r.version_id"
    " JOIN cause_names q ON q.cause_id = t.cause_id JOIN kernels k ON k.kernel_id = t.kernel_id"
    " WHERE r.run_id = :run_id AND q.cause = :cause"
)
_OF_KERNEL = {"kernel_id": " AND k.kernel_id = :kernel_id", "kernel": f" AND {_CONDITIONS['kernel'][0]}"}
_KERNELS_NAMED = text(
    "SELECT DISTINCT t.kernel_id FROM uploads u JOIN kernel_totals t ON t.upload_id = u.upload_id"
    " JOIN kernels k ON k.kernel_id = t.kernel_id"
    f" WHERE u.run_id = :run_id AND u.same_as IS NULL AND {_CONDITIONS['kernel'][0]}"
)


class LaunchFilter(NamedTuple):
    """What launches of a list must satisfy; no condition without a value. ``kernel`` is a part of the name."""

    kernel: str | None = None
    cause: str | None = None
    device_id: int | None = None
    stream: int | None = None
    upload_id: int | None = None
    kernel_id: int | None = None


ALL_LAUNCHES = LaunchFilter()


def list_launches(
    engine: Engine,
    run_id: int,
    only: LaunchFilter = ALL_LAUNCHES,
    *,
    order: str = "-duration",
    skip: int = 0,
    limit: int = 50,
    seconds: float = 10.0,
) -> tuple[list[dict[str, Any]], bool]:
    """Return rows of ``v1_launches`` of a page in their order, and whether more follow.

    Launches that several files tell of count once. Raise `UsageError` after ``seconds``.
    """
    name = order.removeprefix("-")
    if name not in LAUNCH_ORDERS:
        known = " or ".join(LAUNCH_ORDERS)
        raise UsageError(f"order={order!r} is not known; it can be {known}, downwards with a - before it")
    if not 0 <= skip <= MAX_OFFSET or not 1 <= limit <= IDS_PER_QUERY:
        raise UsageError(f"{limit} launches after {skip} cannot be listed; a page has 1 to {IDS_PER_QUERY}")
    by, sorting = LAUNCH_ORDERS[name]
    source, conditions, values = filtered_launches(run_id, only, sorting)
    query = text(
        f"SELECT l.launch_id FROM {source} WHERE {conditions}"
        f" ORDER BY {by}{' DESC' * order.startswith('-')} NULLS LAST, l.launch_id LIMIT :most OFFSET :skip"
    )
    with reading_with_timeout(engine, seconds) as connection:
        launches = _launch_order(connection, run_id, only)
        if launches and launches.has_lists:
            ids = launches.numbers(order, limit + 1, skip)
        else:
            ids = list(connection.execute(query, values | {"most": limit + 1, "skip": skip}).scalars())
    chosen = ids[:limit]
    place = {number: at for at, number in enumerate(chosen)}
    rows = launch_rows(engine, "v1_launches", run_id, chosen)
    return sorted(rows, key=lambda row: place[row["launch_id"]]), len(ids) > limit


def count_launches(engine: Engine, run_id: int, only: LaunchFilter, *, seconds: float = 10.0) -> int:
    """Return how many launches of a run satisfy a filter."""
    source, conditions, values = filtered_launches(run_id, only)
    with reading_with_timeout(engine, seconds) as connection:
        if launches := _launch_order(connection, run_id, only):
            return launches.total
        if only.cause is not None and values.keys() <= {"run_id", "cause", *_OF_KERNEL}:
            query = _CAUSED + "".join(part for name, part in _OF_KERNEL.items() if name in values)
            return int(connection.execute(text(query), values).scalar_one())
        return int(connection.execute(text(f"SELECT count(*) FROM {source} WHERE {conditions}"), values).scalar_one())


def _launch_order(connection: Connection, run_id: int, only: LaunchFilter) -> LaunchOrder | None:
    """Return the launches that satisfy a filter, if it asks for nothing else than kernels and files."""
    if (only.cause, only.device_id, only.stream) != (None, None, None):
        return None
    kernels = None if only.kernel_id is None else [only.kernel_id]
    if only.kernel is not None:
        named = list(connection.execute(_KERNELS_NAMED, {"run_id": run_id, "kernel": _contains(only.kernel)}).scalars())
        kernels = named if kernels is None else [number for number in kernels if number in named]
    return LaunchOrder(connection, run_id, kernels, only.upload_id)


def _contains(part: str) -> str:
    """Return the pattern for texts in small letters that contain a text."""
    escaped = part.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def filtered_launches(run_id: int, only: LaunchFilter, joins: Joins = ()) -> tuple[str, str, dict[str, Any]]:
    """Return the tables, the conditions and the values of a query for launches; ``joins`` are further tables."""
    values = {name: value for name, value in only._asdict().items() if value is not None}
    asked = [_CONDITIONS[name] for name in values]
    if only.kernel is not None:
        values["kernel"] = _contains(only.kernel)
    tables = [
        f"uploads u JOIN launches l ON l.launch_id / {IDS_PER_UPLOAD} = u.upload_id AND l.launch_id"
        f" {UPLOAD_ID_RANGE_SQL}",
        *dict.fromkeys(chain.from_iterable([*(needed for _, needed in asked), joins])),
    ]
    conditions = ["u.run_id = :run_id", "u.same_as IS NULL", *(condition for condition, _ in asked)]
    return " ".join(tables), " AND ".join(conditions), values | {"run_id": run_id}
