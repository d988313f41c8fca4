"""Conditions by which a page of ``v1_samples`` leaves out whole blocks: packed ones are unpacked to be looked at."""

from collections.abc import Sequence

from profsvc.store.queries.view_conditions import Condition
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

VIEW = "v1_samples"
# Column -> the columns with what it is at least and at most in a block.
_BOUNDS = {
    "elapsed_ns": ("block_least_ns", "block_most_ns"),
    "time_ns": ("block_least_time_ns", "block_most_time_ns"),
    "sample_id": ("block_id", "block_last_id"),
}
_SIGNS = {"": ("<=", ">="), "gt": (None, ">"), "gte": (None, ">="), "lt": ("<", None), "lte": ("<=", None)}
# The owners of the blocks that are counted, by the column of a condition.
_OWNERS = {"run_id": "u.run_id = {}", "upload_id": "u.upload_id = {}", "sensor_id": "b.sensor_id = {}"}


def block_conditions(only: Sequence[Condition]) -> list[str]:
    """Return what holds of the blocks of readings that satisfy conditions.

    >>> block_conditions([Condition("run_id", "", "7"), Condition("elapsed_ns", "gte", "5")])
    ['block_most_ns >= :value_1']
    """
    found = []
    for number, (column, how, _) in enumerate(only):
        if column in _BOUNDS and how in _SIGNS:
            bounds = zip(_BOUNDS[column], _SIGNS[how], strict=True)
            found += [f"{bound} {sign} :value_{number}" for bound, sign in bounds if sign]
    return found


def page_conditions(only: Sequence[Condition], sign: str, place: int | None) -> list[str]:
    """Return what holds of the blocks of a page along ``sample_id`` from ``place`` on (``sign``: > upwards, else <).

    Blocks are counted up to the one that fills the page of ``:most`` rows, if all their readings are asked for.
    """
    conditions = []
    if place is not None:
        conditions.append("block_last_id > :place" if sign == ">" else "block_id < :place")
    if only and all(not one.how and one.column in _OWNERS for one in only):
        owners = [_OWNERS[one.column].format(f":value_{number}") for number, one in enumerate(only)]
        before = {">": " AND b.last_id > :place", "<": " AND b.first_id < :place"}[sign] * (place is not None)
        # Of the block in which the page begins at least one reading is on it.
        counted = (
            "SELECT b.first_id, sum(b.last_id - b.first_id + 1) OVER (ORDER BY b.first_id{order}) AS readings,"
            " first_value(b.last_id - b.first_id) OVER (ORDER BY b.first_id{order}) AS first_readings"
            f" FROM uploads u JOIN sample_blocks b ON b.sensor_id > u.upload_id * {IDS_PER_UPLOAD}"
            f" AND b.sensor_id < (u.upload_id + 1) * {IDS_PER_UPLOAD} WHERE {' AND '.join(owners)}{before}"
        ).format(order=" DESC" * (sign == "<"))
        least, worst = ("min", "<=") if sign == ">" else ("max", ">=")
        outermost = 2**63 - 1 if sign == ">" else 0
        conditions.append(
            f"block_id {worst} coalesce((SELECT {least}(c.first_id) FROM ({counted}) c"
            f" WHERE c.readings - c.first_readings >= :most), {outermost})"
        )
    return conditions
