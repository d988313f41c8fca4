"""The launches of a run as people look through them: ordered, page by page, of all kernels or of one."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, text

from profsvc.errors import UsageError
from profsvc.store.queries.largest import IDS_PER_QUERY, launch_rows
from profsvc.store.queries.view_pages import MAX_OFFSET, reading_with_timeout
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.view_definition import UPLOAD_ID_RANGE_SQL

_SHAPE = " JOIN shapes h ON h.shape_id = l.shape_id"
_BOUND = (
    " LEFT JOIN potential p ON p.run_id = u.run_id AND p.launch_id = l.launch_id AND p.kernel_id = 0"
    " AND p.version_id = (SELECT r.version_id FROM runs r WHERE r.run_id = u.run_id)"
)
# Order -> what it sorts by, and the joins that this needs.
LAUNCH_ORDERS: Mapping[str, tuple[str, str]] = {
    "launch": ("l.launch_id", ""),
    "duration": ("l.duration_ns", ""),
    "kernel": ("k.kernel_short", f"{_SHAPE} JOIN kernels k ON k.kernel_id = h.kernel_id"),
    "potential": ("p.speedup", _BOUND),
}


def list_launches(
    engine: Engine,
    run_id: int,
    *,
    order: str = "-duration",
    skip: int = 0,
    limit: int = 50,
    kernel_id: int | None = None,
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
    by, joins = LAUNCH_ORDERS[name]
    if kernel_id is not None and _SHAPE not in joins:
        joins += _SHAPE
    of_kernel = "" if kernel_id is None else " AND h.kernel_id = :kernel_id"
    query = text(
        f"SELECT l.launch_id FROM uploads u JOIN launches l ON l.launch_id / {IDS_PER_UPLOAD} = u.upload_id"
        f" AND l.launch_id {UPLOAD_ID_RANGE_SQL}{joins} WHERE u.run_id = :run_id AND u.same_as IS NULL{of_kernel}"
        f" ORDER BY {by}{' DESC' * order.startswith('-')} NULLS LAST, l.launch_id LIMIT :most OFFSET :skip"
    )
    values = {"run_id": run_id, "most": limit + 1, "skip": skip}
    with reading_with_timeout(engine, seconds) as connection:
        ids = list(
            connection.execute(query, values | ({} if kernel_id is None else {"kernel_id": kernel_id})).scalars()
        )
    chosen = ids[:limit]
    place = {number: at for at, number in enumerate(chosen)}
    rows = launch_rows(engine, "v1_launches", run_id, chosen)
    return sorted(rows, key=lambda row: place[row["launch_id"]]), len(ids) > limit
