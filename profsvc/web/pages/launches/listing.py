"""The table of the launches of a run: filters, order, columns and pages, all of them in the address."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.requests import Request

from profsvc import store, views
from profsvc.analysis.causes.sentence import brief
from profsvc.reports.kernel_names import labelled
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.filters import count
from profsvc.web.pages.rendering.tables import Column, Row, nonempty_columns

ROWS, MAX_ROWS = 50, 500
MAX_ID = 2**62
FACETS = {"cause": "Cause", "device": "Device", "stream": "Stream", "source": "File"}
ALWAYS_SHOWN = ("launch", "kernel", "duration_ns")


class Listing(NamedTuple):
    """What a request wants to see of the launches of a run."""

    given: Mapping[str, str]
    """Filter -> its text in the address; empty without one."""
    columns: Sequence[str]
    order: str
    skip: int
    limit: int

    @property
    def is_filtered(self) -> bool:
        """Whether the launches are filtered."""
        return any(self.given.values())

    def conditions(self) -> store.LaunchFilter:
        """Return the filter."""
        numbers = {name: int(text) if text else None for name, text in self.given.items() if name in NUMBERS}
        return store.LaunchFilter(
            kernel=self.given["kernel"] or None, cause=self.given["cause"] or None, stream=numbers["stream"],
            device_id=numbers["device"], upload_id=numbers["source"],
        )  # fmt: skip


NUMBERS = ("device", "stream", "source")


def listing_of(args: RequestArgs) -> Listing:
    """Read what a request wants to see."""
    given = {name: args.text(name) for name in ("kernel", "cause")}
    for name in NUMBERS:
        number = args.number(name, int, -1, "a number, as in the list of the page")
        given[name] = "" if number < 0 else str(min(number, MAX_ID))
    columns = [name for text in args.texts("columns") for name in text.split(",")]
    skip = args.number("after", int, 0, "the number of launches to skip")
    return Listing(given, columns, args.text("order", "-duration"), skip, args.count("limit", ROWS, MAX_ROWS))


def _launch_path(row: Row) -> str:
    return f"/runs/{row['run_id']}/launches/{row['launch_id']}"


def launch_of_row(row: Row) -> dict[str, Any]:
    """Return the run and launch of a row, for the explanation of its numbers."""
    return {"run": row["run_id"], "launch": row["launch_id"]}


LAUNCH_COLUMNS = (
    Column("launch", "#", "number", "v1_launches.launch_index",
           lambda row: {"run": row["run_id"], "row": row["launch_id"]}, sort="launch"),
    Column("kernel", "kernel", "name", link=_launch_path, sort="kernel", width=44, full="kernel_full"),
    Column("duration_ns", "duration", "duration", "duration_ns", launch_of_row, sort="duration"),
    Column("compute", "compute", "light", "sol_sm_fraction", launch_of_row, sort="compute"),
    Column("memory", "memory", "light", "sol_memory_fraction", launch_of_row, sort="memory"),
    Column("limit", "limited by", sort="limit"),
    Column("potential", "potential", "speedup", "potential", launch_of_row, sort="potential", flags="flags"),
    Column("ceiling", "ceiling", "speedup", "v1_potential.speedup_ceiling", launch_of_row, sort="ceiling",
           flags="ceiling_flags"),
    Column("answer", "what to do first", explain="advice.saving", where=launch_of_row, sort="saving", full="first"),
)  # fmt: skip


def launch_rows(launches: list[dict[str, Any]], run_id: int) -> list[dict[str, Any]]:
    """Return the launches of a view as rows of the table."""
    return [
        row
        | {
            "run_id": run_id,
            "duration_ns": None if row["duration_us"] is None else 1e3 * row["duration_us"],
            "compute": None if row.get("compute_pct") is None else row["compute_pct"] / 100,
            "memory": None if row.get("memory_pct") is None else row["memory_pct"] / 100,
            "limit": row["bound"] or row["reason"],
            "answer": brief(row["causes"]) if row["causes"] else row["first"],
        }
        for row in labelled(launches)
    ]


def missing_result_reasons(launches: list[dict[str, Any]]) -> list[str]:
    """Return why none of these launches has results; empty if one has."""
    reasons = [str(row["reason"]) for row in launches if row["reason"]]
    return [] if any(row["bound"] for row in launches) else list(dict.fromkeys(reasons))


def launch_section(
    request: Request, run_id: int, wanted: Listing, *, kernel_id: int | None = None, causes: Sequence[Row] = ()
) -> dict[str, Any]:
    """Return the template variables of the table: rows, columns, filters and pages.

    ``causes`` are pairs of kernel and cause, whose causes can be chosen.
    """
    state = app_state(request)
    only = wanted.conditions()._replace(kernel_id=kernel_id)
    found = views.launch_page(
        state.engine, run_id, only, order=wanted.order, skip=wanted.skip, limit=wanted.limit,
        seconds=state.limits.sql_seconds,
    )  # fmt: skip
    rows = launch_rows(found["launches"], run_id)
    reasons = missing_result_reasons(rows)
    usable = nonempty_columns([one for one in LAUNCH_COLUMNS if one.name != "limit" or not reasons], rows, ALWAYS_SHOWN)
    chosen = [one for one in usable if one.name in (*ALWAYS_SHOWN, *wanted.columns)]
    facets = store.launch_facets(state.engine, run_id, seconds=state.limits.sql_seconds) if kernel_id is None else {}
    facets["cause"] = _causes(causes)
    return {
        "launches": rows,
        "missing_results": reasons,
        "order": wanted.order,
        "launch_columns": chosen if wanted.columns else usable,
        "column_choices": [
            {"name": one.name, "title": one.title, "shown": not wanted.columns or one in chosen}
            for one in usable
            if one.name not in ALWAYS_SHOWN
        ],
        "facets": [
            {"name": name, "title": title, "values": values, "chosen": wanted.given[name]}
            for name, title in FACETS.items()
            if len(values := facets.get(name, [])) > 1 or wanted.given[name]
        ],
        "listing": wanted,
        **pager(found, wanted.skip, wanted.limit, "launches"),
    }


def _causes(pairs: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the causes with their numbers of launches, those of most launches first."""
    launches = Counter[tuple[str, str]]()
    for row in pairs:
        if row["kernel_id"] is not None:
            launches[row["cause"], row["title"]] += row["launches"]
    return [{"value": cause, "title": title, "launches": number} for (cause, title), number in launches.most_common()]


def pager(found: Row, skip: int, limit: int, what: str) -> dict[str, Any]:
    """Return the template variables of the links to other pages."""
    rows = found["launches"]
    total = f"{what} {count(skip + 1)} to {count(skip + len(rows))} of {count(found['total'])}"
    return {
        "total": total if rows else f"no {what}",
        "following": str(skip + limit) if found["truncated"] else None,
        "before": None if skip == 0 else str(max(0, skip - limit)) if skip > limit else "",
    }
