"""Where a run can save time: pairs of kernel and cause, those that save most first."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine

from profsvc import store
from profsvc.reports.kernel_names import labelled
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.pages.launches.listing import Listing
from profsvc.web.pages.rendering.tables import Column, Row

PAIRS, MAX_PAIRS = 8, 500
LAUNCHES_PER_PAIR = 5
ORDERS = ("-saving", "saving", "kernel", "-kernel", "cause", "-cause", "launches", "-launches")
_KEYS = {"saving": "saving_ns", "kernel": "kernel_short", "cause": "title", "launches": "launches"}


def _first_launch(row: Row) -> str:
    if row["kernel_id"] is None:
        return f"/runs/{row['run_id']}/means/{row['kernel_full']}"
    worst = row["worst"]
    return f"/runs/{row['run_id']}/launches/{worst[0]['launch_id']}" if worst else f"/runs/{row['run_id']}"


def _run_of_row(row: Row) -> Mapping[str, Any]:
    return {"run": row["run_id"]}


def _worst_of_row(row: Row) -> Mapping[str, Any]:
    return {"run": row["run_id"]} | ({"launch": row["worst"][0]["launch_id"]} if row["worst"] else {})


COLUMNS = (
    Column("kernel", "kernel", "name", link=_first_launch, width=40, full="kernel_full", sort="kernel"),
    Column("title", "cause", explain=lambda row: row["cause"], where=_worst_of_row, sort="cause"),
    Column("saving_ns", "saves", "duration", "run.cause_saving", _run_of_row, sort="saving"),
    Column("share", "of the run", "part", "run.cause_share", _run_of_row),
    Column("launches", "launches", "launches", sort="launches"),
    Column("first_step", "first step"),
)


def savings(
    engine: Engine, info: Row, causes: Sequence[dict[str, Any]], args: RequestArgs, listing: Listing
) -> dict[str, Any]:
    """Return the template variables of the table; without rows if the causes of the run are unknown.

    The filters of the launches for kernel and cause apply to it too.
    """
    order = args.choice("by", ORDERS, "-saving")
    limit = args.count("pairs", PAIRS, MAX_PAIRS)
    rows = [row for row in causes if _is_wanted(row, listing)]
    rows.sort(key=lambda row: _sort_key(row[_KEYS[order.removeprefix("-")]]), reverse=order.startswith("-"))
    shown = rows[:limit]
    pairs = [(row["kernel_id"], row["cause"]) for row in shown if row["kernel_id"] is not None]
    worst = store.costly_launches(engine, info["run_id"], pairs, LAUNCHES_PER_PAIR)
    whole = info["gpu_time_ns"]
    made = [
        row
        | {
            "run_id": info["run_id"],
            "kernel_full": row["kernel"],
            "worst": worst.get((row["kernel_id"], row["cause"]), []),
            "share": row["saving_ns"] / whole if whole and row["saving_ns"] is not None else None,
        }
        for row in shown
    ]
    return {
        "rows": labelled(made),
        "columns": COLUMNS,
        "order": order,
        "more": len(rows) - len(shown),
        "is_known": bool(causes),
        "causes": {row["cause"] for row in causes},
    }


def _is_wanted(row: Row, listing: Listing) -> bool:
    kernel, cause = listing.given["kernel"].lower(), listing.given["cause"]
    return kernel in str(row["kernel"]).lower() and cause in ("", row["cause"])


def _sort_key(value: Any) -> tuple[bool, Any]:
    return value is not None, value
