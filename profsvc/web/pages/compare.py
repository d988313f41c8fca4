"""``/compare``: two runs beside each other, what became of each kernel, and whether what was foretold came true."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store, views
from profsvc.errors import NotFoundError, UsageError
from profsvc.reports.comparison import achieved
from profsvc.reports.model_text import interval
from profsvc.reports.text import several
from profsvc.views import compare as side_by_side
from profsvc.web.asked import Asked
from profsvc.web.pages.frame import Links, moved, page, path_to, run_of
from profsvc.web.pages.history import LONGEST_PATH, history_of
from profsvc.web.pages.tables import Column, Row
from profsvc.web.pages.words import name
from profsvc.web.routes import add_page
from profsvc.web.site import grant_of, site_of

NEWEST = 60
FEW = 24
BETWEEN = "..."


def show(request: Request) -> Response:
    """Show two runs beside each other; without two, which there are."""
    asked, engine = Asked(request), site_of(request).engine
    names = {when: asked.text(when) for when in ("before", "after")}
    mapped, lines = asked.pairs("map", "reduce_v1=reduce_v7"), asked.texts("map")
    asked.done()
    newest = _newest(engine, grant_of(request).project)
    known: dict[str, Any] = {"names": names, "newest": newest, "mapped": lines, "said": "", "view": None}
    if not all(names.values()):
        said = "" if not any(names.values()) else "Name both runs: the one before, and the one after."
        return page(request, "compare.html", "Compare two runs", **known | {"said": said, "beside": _beside(newest)})
    try:
        old, new = (run_of(request, name) for name in names.values())
        view = side_by_side.compare(engine, old, new, mapped)
    except (NotFoundError, UsageError) as error:
        wrong = {"said": str(error), "beside": _beside(newest), "status": error.status}
        return page(request, "compare.html", "Compare two runs", **known | wrong)
    title = " \u2192 ".join(name(view[when]["name"], 60) for when in ("before", "after"))
    links = Links(json=path_to(request, "/v1/compare", request.query_params.multi_items()))
    known["names"] = {when: _called(engine, names[when], view[when]) for when in names}
    return page(request, "compare.html", title, links=links, **known | {"beside": ()} | _shown(view))


def _called(engine: Engine, asked: str, run: Mapping[str, Any]) -> str:
    """Return what a form says of a run: its name instead of its number, where this means it alone."""
    if asked != str(run["run_id"]):
        return asked
    # A field holds what is sent again: no name that a page would write otherwise, or cut.
    for text in (str(run["name"]), f"{run['project']}/{run['name']}"):
        try:
            if len(text) <= LONGEST_PATH and text.isprintable() and store.find_run(engine, text) == run["run_id"]:
                return text
        except (NotFoundError, UsageError):  # several runs have this name
            continue
    return asked


def of_pair(request: Request) -> Response:
    """Lead from ``/compare/A...B`` to the comparison of A and B."""
    Asked(request).done()
    before, between, after = request.path_params["pair"].partition(BETWEEN)
    if not between:
        raise UsageError(f"write /compare/BEFORE{BETWEEN}AFTER, with two runs by number, name or project/name")
    return moved(request, "/compare", {"before": before, "after": after})


def _newest(engine: Engine, project: str | None) -> list[dict[str, Any]]:
    columns = ["run_id", "project", "name", "device", "commit_id", "started_at", "created_at"]
    return store.list_view(
        engine, "v1_runs", columns=columns, order=["-run_id"], limit=NEWEST, project=project
    ).rows  # fmt: skip


def _beside(newest: Sequence[Row]) -> list[dict[str, Any]]:
    """The newest runs, each with the one before it of its project and device."""
    found, later = [], dict[Any, Row]()
    for row in newest:
        key = row["project"], row["device"]
        if key in later:
            found.append({"before": row, "after": later[key]})
        later[key] = row
    return found[:FEW]


def _shown(view: Mapping[str, Any]) -> dict[str, Any]:
    old, new = view["before"]["run_id"], view["after"]["run_id"]
    least = specs.smallest_change("criterion").absolute
    criteria = sorted((_criterion(row, least) for row in view["criteria"]), key=lambda row: -abs(row["change"]))
    moved_by = sum(abs(row["change"]) >= least for row in criteria)
    return {
        "view": view,
        "kernels": [_kernel(row, view) for row in view["kernels"]],
        "kernel_columns": _kernel_columns(old, new),
        "criteria": criteria[: min(FEW, moved_by)],
        "more_criteria": criteria[min(FEW, moved_by) :],
        "least": least,
        "power": [_power(row, old, new) for row in view["power"]],
        "power_columns": POWER,
        "power_words": _words(view["power"]),
        "alone": [(when, view[f"only_{when}"]) for when in ("before", "after") if view[f"only_{when}"]],
        "alone_columns": ALONE,
        "facts": _facts(view),
    }


def _facts(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What both runs are, a row a fact."""
    columns = {"project": "Project", "device": "Device", "host": "Host", "commit_id": "Commit", "started_at": "Began",
               "launches": "Launches", "analysis_version": "Analysis"}  # fmt: skip
    explain = {"launches": "v1_runs.launches", "analysis_version": "compare.analysis"}
    rows = [{"what": title, "explain": explain.get(name), **{when: view[when][name] for when in ("before", "after")}}
            for name, title in columns.items()]  # fmt: skip
    return [row for row in rows if row["before"] is not None or row["after"] is not None]


def _kernel(row: Row, view: Mapping[str, Any]) -> dict[str, Any]:
    names = [str(row[f"kernel_{when}"]) for when in ("before", "after")]
    bounds = [row[f"limit_{when}"] for when in ("before", "after")]
    changed = bounds[0] != bounds[1] and any(bounds)
    return dict(row) | {
        "name": names[0] if names[0] == names[1] else f"{names[0]} \u2192 {names[1]}",
        "full": row["kernel_before_full"],
        "before_ns": _ns(row["mean_before_us"]),
        "after_ns": _ns(row["mean_after_us"]),
        "limit": f"{bounds[0] or '?'} \u2192 {bounds[1] or '?'}" if changed else bounds[0],
        "share": achieved(row["outcome"], row["achieved_share"]),
        "kernel": row["kernel_after_full"],
    }


def _ns(microseconds: float | None) -> float | None:
    return None if microseconds is None else 1e3 * microseconds


def _criterion(row: Row, least: float) -> dict[str, Any]:
    names = [str(row[f"kernel_{when}"]) for when in ("before", "after")]
    return dict(row) | {
        "name": names[0] if names[0] == names[1] else f"{names[0]} \u2192 {names[1]}",
        "title": views.texts()[row["criterion"]]["title"],
        "by": f"{row['change']:+.3f}",
        "direction": "" if abs(row["change"]) < least else "better" if row["change"] > 0 else "worse",
    }


def _kernel_columns(old: int, new: int) -> list[Column]:
    return [
        Column("name", "Kernel", "name", full="full", width=44, link=lambda row: history_of(row["kernel"])),
        Column("launches_before", "Launches before", "number", "compare.launches"),
        Column("launches_after", "after", "number", "compare.launches"),
        Column("before_ns", "Mean before", "duration", explain="v1_kernel_totals.mean_ns",
               where=lambda _: {"run": old}),
        Column("after_ns", "Mean after", "duration", explain="v1_kernel_totals.mean_ns",
               where=lambda _: {"run": new}),
        Column("speedup", "Achieved", "speedup", "compare.speedup"),
        Column("predicted", "Foretold", "speedup", explain="potential", where=lambda _: {"run": old},
               flags="predicted_flags"),
        Column("share", "Achieved of it", "number", "compare.share"),
        Column("estimate", "NVIDIA foretold", "speedup", explain="v1_rules.estimated_speedup",
               where=lambda _: {"run": old}),
        Column("limit", "Limited by"),
        Column("matched_by", "Same by"),
    ]  # fmt: skip


def _power(row: Row, old: int, new: int) -> dict[str, Any]:
    made = dict(row) | {"before": old, "after": new}
    for what, unit in (("power", "w"), ("energy", "j")):
        for when in ("before", "after"):
            name = f"{what}_{when}"
            made[f"{name}_text"] = interval(row, f"{name}_{unit}", f"{name}_low_{unit}", f"{name}_high_{unit}")
        change = row[f"{what}_change"]
        made[f"{what}_by"] = "" if change is None else f"{100 * change:+.1f} %"
    sure = [what for what in ("power", "energy") if row[f"{what}_beyond"]]
    made["beyond"] = " ".join(sure) if sure else ("" if row["power_beyond"] is None else "no")
    labels = [str(row["window"]), str(row["window_after"])]
    made["label"] = labels[0] if labels[0] == labels[1] else f"{labels[0]} \u2192 {labels[1]}"
    return made


def _words(rows: Sequence[Row]) -> list[str]:
    """Say at which temperature windows are compared, and why others are as measured."""
    said = [
        f"{row['sensor']}: corrected to {row['reference_temperature_c']:.4g} \u00b0C, that of the run before."
        for row in rows
        if row["corrected"]
    ]
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if not row["corrected"]:
            reasons.setdefault(row["reason"], []).append(str(row["window"]))
    said += [f"As measured ({several(labels, 3)}): {reason}"
             for reason, labels in reasons.items()]  # fmt: skip
    return list(dict.fromkeys(said))


def _of(when: str) -> Any:
    return lambda row: {"run": row[when]}


POWER = [
    Column("label", "Window", "name", width=36),
    Column("sensor", "Sensor", "name", width=28),
    Column("power_before_text", "W before", "number", explain="v1_power.corrected_power_w", where=_of("before")),
    Column("power_after_text", "W after", "number", explain="v1_power.corrected_power_w", where=_of("after")),
    Column("power_by", "Change", "number", "compare.power_change"),
    Column("energy_before_text", "J before", "number", explain="v1_power.corrected_energy_j", where=_of("before")),
    Column("energy_after_text", "J after", "number", explain="v1_power.corrected_energy_j", where=_of("after")),
    Column("energy_by", "Change", "number", "compare.energy_change"),
    Column("mean_power_before_w", "W measured before", "number", explain="v1_power.mean_power_w", where=_of("before")),
    Column("mean_power_after_w", "after", "number", explain="v1_power.mean_power_w", where=_of("after")),
    Column("beyond", "Beyond doubt", "flags"),
]
ALONE = [
    Column("kernel", "Kernel", "name", full="kernel_full", width=60, link=lambda row: history_of(row["kernel_full"])),
    Column("launches", "Launches", "number", "compare.launches"),
    Column("mean_us", "Mean (\u00b5s)", "number", "compare.mean"),
]


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/compare", show, "read", name="compare_page")
    add_page(app, "/compare/{pair:path}", of_pair, "read", name="compare_pair")
