"""``/compare``: two runs side by side: change per kernel, and predicted against achieved speedup; or several runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store, views
from profsvc.analysis.changes.outcomes import FASTER, NO_CHANGE, REGRESSION
from profsvc.errors import NotFoundError, UsageError
from profsvc.reports.text.comparison.two_runs import (
    CHANGED,
    achieved,
    large_parts,
    overall_change,
    reasons_not_corrected,
)
from profsvc.reports.text.models.values import interval
from profsvc.views.comparison import several_runs, two_runs
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state, grant_of
from profsvc.web.pages.nightly.history import MAX_PATH_NAME, history_path
from profsvc.web.pages.rendering.filters import name
from profsvc.web.pages.rendering.kept_pages import kept
from profsvc.web.pages.rendering.page import Links, find_run_id, page, path_to, redirect
from profsvc.web.pages.rendering.tables import Column, Row, nonempty_columns

MAX_LISTED_RUNS = 60
MAX_SHOWN = 24
UNMATCHED = {"before": "Only before: gone kernels", "after": "Only after: new kernels"}
ALWAYS_SHOWN = ("name", "effect_ns", "change", "before_ns", "after_ns", "speedup")
"""Columns of the kernels that are there even if no kernel has a value."""
WORDS = {REGRESSION: "slower", FASTER: "faster", NO_CHANGE: "same"}
"""Outcome of a kernel -> the word beside its change."""
PAIR_SEPARATOR = "..."


def show_comparison(request: Request) -> Response:
    """Compare two runs, or those ticked in a list; without two, list the newest pairs."""
    args, engine = RequestArgs(request), app_state(request).engine
    names = {when: args.text(when) for when in ("before", "after")}
    ticked = args.texts("run")
    baseline = args.text("baseline") if ticked else ""
    mapped, lines = args.pairs("map", "reduce_v1=reduce_v7"), args.texts("map")
    args.reject_unknown()
    if ticked:
        return _show_ticked(request, ticked, baseline)
    newest = _newest_runs(engine, grant_of(request).project)
    known: dict[str, Any] = {"names": names, "newest": newest, "mapped": lines, "message": "", "view": None}
    if not all(names.values()):
        message = "" if not any(names.values()) else "Name both runs: before and after."
        return page(
            request,
            "runs/compare.html",
            "Compare two runs",
            **known | {"message": message, "recent_pairs": _consecutive_pairs(newest)},
        )
    try:
        old, new = (find_run_id(request, name) for name in names.values())
        view = two_runs.compare(engine, old, new, mapped)
    except (NotFoundError, UsageError) as error:
        wrong = {"message": str(error), "recent_pairs": _consecutive_pairs(newest), "status": error.status}
        return page(request, "runs/compare.html", "Compare two runs", **known | wrong)
    title = " \u2192 ".join(name(view[when]["name"], 60) for when in ("before", "after"))
    links = Links(json=path_to(request, "/v1/compare", request.query_params.multi_items()))
    known["names"] = {when: _form_value(engine, names[when], view[when]) for when in names}
    return page(
        request, "runs/compare.html", title, links=links, **known | {"recent_pairs": ()} | _comparison_values(view)
    )


def _form_value(engine: Engine, given: str, run: Mapping[str, Any]) -> str:
    """Return the text of a form field for a run: its name if that is unique, else what was given."""
    if given != str(run["run_id"]):
        return given
    # The field is submitted again, so the name must survive rendering unchanged.
    for text in (str(run["name"]), f"{run['project']}/{run['name']}"):
        try:
            if len(text) <= MAX_PATH_NAME and text.isprintable() and store.find_run(engine, text) == run["run_id"]:
                return text
        except (NotFoundError, UsageError):  # the name is ambiguous
            continue
    return given


def _show_ticked(request: Request, ticked: Sequence[str], baseline: str) -> Response:
    """Compare the ticked runs of a list, the oldest one first: two as before and after, more in one table."""
    ids = sorted({find_run_id(request, name) for name in ticked})
    if len(ids) == 2:
        return redirect(request, "/compare", {"before": str(ids[0]), "after": str(ids[1])})
    if not 2 < len(ids) <= several_runs.MAX_RUNS:
        raise UsageError(f"tick two to {several_runs.MAX_RUNS} runs to compare them; ticked: {len(ids)}")
    base = find_run_id(request, baseline) if baseline else None
    view = several_runs.compare_several(app_state(request).engine, ids, base)
    links = Links(json=path_to(request, "/v1/compare/runs", request.query_params.multi_items()))
    asked = [("run", str(run_id)) for run_id in ids]
    return page(
        request, "runs/compare_several.html", f"Compare {len(ids)} runs", links=links, view=view,
        runs=[run | {"path": path_to(request, "/compare", [*asked, ("baseline", str(run["run_id"]))])}
              for run in view["runs"]],
        columns=_several_columns(view), rows=_several_rows(view),
    )  # fmt: skip


def _several_columns(view: Mapping[str, Any]) -> list[Column]:
    columns = [Column("kernel", "Kernel", "name", full="kernel_full", width=44,
                      link=lambda row: history_path(row["kernel_full"]))]  # fmt: skip
    for place, run in enumerate(view["runs"]):
        columns.append(Column(f"mean_{place}", name(run["name"], 24), "duration", "v1_kernel_totals.mean_ns",
                              _always({"run": run["run_id"]})))  # fmt: skip
        if run["run_id"] != view["baseline"]:
            columns.append(Column(f"change_{place}", "Change", "change", "compare.change", flags=f"word_{place}"))
    return columns


def _always(where: Mapping[str, Any]) -> Callable[[Row], Mapping[str, Any]]:
    return lambda _: where


def _several_rows(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        | {f"mean_{place}": _to_ns(mean) for place, mean in enumerate(row["mean_us"])}
        | {f"change_{place}": change for place, change in enumerate(row["change"])}
        | {f"word_{place}": WORDS.get(word or "", "") for place, word in enumerate(row["outcome"])}
        for row in view["kernels"]
    ]


def redirect_pair(request: Request) -> Response:
    """Redirect ``/compare/A...B`` to the comparison of A and B."""
    RequestArgs(request).reject_unknown()
    before, between, after = request.path_params["pair"].partition(PAIR_SEPARATOR)
    if not between:
        raise UsageError(f"write /compare/BEFORE{PAIR_SEPARATOR}AFTER, with two runs by number, name or project/name")
    return redirect(request, "/compare", {"before": before, "after": after})


def _newest_runs(engine: Engine, project: str | None) -> list[dict[str, Any]]:
    columns = ["run_id", "project", "name", "device", "commit_id", "started_at", "created_at"]
    return store.list_view(
        engine, "v1_runs", columns=columns, order=["-run_id"], limit=MAX_LISTED_RUNS, project=project
    ).rows  # fmt: skip


def _consecutive_pairs(newest: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the newest runs, each with its predecessor of the same project and device."""
    found, later = [], dict[Any, Row]()
    for row in newest:
        key = row["project"], row["device"]
        if key in later:
            found.append({"before": row, "after": later[key]})
        later[key] = row
    return found[:MAX_SHOWN]


def _comparison_values(view: Mapping[str, Any]) -> dict[str, Any]:
    old, new = view["before"]["run_id"], view["after"]["run_id"]
    least = specs.smallest_change("criterion").absolute
    criteria = sorted((_criterion_row(row, least) for row in view["criteria"]), key=lambda row: -abs(row["change"]))
    kernels = [_kernel_row(row, view) for row in sorted(view["kernels"], key=_effect, reverse=True)]
    moved_by = sum(abs(row["change"]) >= least for row in criteria)
    return {
        "view": view,
        "kernels": kernels,
        "appeared": [row for row in view["kernels"] if row["new_causes"]],
        "kernel_columns": nonempty_columns(_kernel_columns(old, new), kernels, ALWAYS_SHOWN),
        "criteria": criteria[: min(MAX_SHOWN, moved_by)],
        "more_criteria": criteria[min(MAX_SHOWN, moved_by) :],
        "least": least,
        "power": [_power_row(row, old, new) for row in view["power"]],
        "power_columns": POWER_COLUMNS,
        "correction_notes": _correction_notes(view["power"]),
        "unmatched": [
            (when, UNMATCHED[when], sorted(view[f"only_{when}"], key=lambda row: -(row["total_us"] or 0.0)))
            for when in UNMATCHED
            if view[f"only_{when}"]
        ],
        "unmatched_columns": UNMATCHED_COLUMNS,
        "facts": _run_facts(view),
        "why": _why(view),
        "overall_change": overall_change(view["geometric_mean_speedup"]),
    }


def _why(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the kernels whose times changed, with the causes of the change."""
    return [
        {"kernel": row["kernel_after"], "change": f"{100 * (1 / row['speedup'] - 1):+.2g} %",
         "parts": [part | {"change": f"{100 * part['change_fraction']:+.2g} %"} for part in parts]}
        for row in sorted(view["kernels"], key=_effect, reverse=True)
        if row["outcome"] in CHANGED and (parts := large_parts(row["causes"]))
    ]  # fmt: skip


def _effect(row: Row) -> float:
    return abs(float(row["effect_us"] or 0.0))


def _run_facts(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the properties of both runs, one row per property."""
    columns = {"project": "Project", "device": "Device", "host": "Host", "commit_id": "Commit", "started_at": "Started",
               "launches": "Launches", "analysis_version": "Analysis version"}  # fmt: skip
    explain = {"launches": "v1_runs.launches", "analysis_version": "compare.analysis"}
    rows = [{"what": title, "explain": explain.get(name), **{when: view[when][name] for when in ("before", "after")}}
            for name, title in columns.items()]  # fmt: skip
    return [row for row in rows if row["before"] is not None or row["after"] is not None]


def _kernel_row(row: Row, view: Mapping[str, Any]) -> dict[str, Any]:
    names = [str(row[f"kernel_{when}"]) for when in ("before", "after")]
    bounds = [row[f"limit_{when}"] for when in ("before", "after")]
    changed = bounds[0] != bounds[1] and any(bounds)
    return dict(row) | {
        "name": names[0] if names[0] == names[1] else f"{names[0]} \u2192 {names[1]}",
        "full": row["kernel_before_full"],
        "before_ns": _to_ns(row["mean_before_us"]),
        "after_ns": _to_ns(row["mean_after_us"]),
        "effect_ns": _to_ns(row["effect_us"]),
        "word": WORDS.get(row["outcome"] or "", ""),
        "changed": "; ".join(f"{one['what']} {one['before']} \u2192 {one['after']}" for one in row["changes"]),
        "limit": f"{bounds[0] or '?'} \u2192 {bounds[1] or '?'}" if changed else bounds[0],
        "share": achieved(row["outcome"], row["achieved_share"]),
        "kernel": row["kernel_after_full"],
    }


def _to_ns(microseconds: float | None) -> float | None:
    return None if microseconds is None else 1e3 * microseconds


def _criterion_row(row: Row, least: float) -> dict[str, Any]:
    names = [str(row[f"kernel_{when}"]) for when in ("before", "after")]
    return dict(row) | {
        "name": names[0] if names[0] == names[1] else f"{names[0]} \u2192 {names[1]}",
        "title": views.titles_and_hints()[row["criterion"]]["title"],
        "by": f"{row['change']:+.3f}",
        "direction": "" if abs(row["change"]) < least else "better" if row["change"] > 0 else "worse",
    }


def _kernel_columns(old: int, new: int) -> list[Column]:
    return [
        Column("name", "Kernel", "name", full="full", width=44, link=lambda row: history_path(row["kernel"])),
        Column("effect_ns", "Effect on the run", "signed", "compare.effect", flags="word"),
        Column("change", "Change", "change", "compare.change", flags="word"),
        Column("launches_before", "Launches before", "number", "compare.launches"),
        Column("launches_after", "Launches after", "number", "compare.launches"),
        Column("before_ns", "Mean before", "duration", explain="v1_kernel_totals.mean_ns",
               where=lambda _: {"run": old}),
        Column("after_ns", "Mean after", "duration", explain="v1_kernel_totals.mean_ns",
               where=lambda _: {"run": new}),
        Column("speedup", "Achieved", "speedup", "compare.speedup"),
        Column("predicted", "Predicted", "speedup", explain="potential", where=lambda _: {"run": old},
               flags="predicted_flags"),
        Column("share", "Share of predicted gain", "number", "compare.share"),
        Column("estimate", "Nsight estimate", "speedup", explain="v1_rules.estimated_speedup",
               where=lambda _: {"run": old}),
        Column("limit", "Limited by"),
        Column("changed", "Launch shape"),
        Column("matched_by", "Matched by"),
    ]  # fmt: skip


def _power_row(row: Row, old: int, new: int) -> dict[str, Any]:
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


def _correction_notes(rows: Sequence[Row]) -> list[str]:
    """Return notes on the reference temperature, and on why windows are not corrected."""
    said = [
        f"{row['sensor']}: corrected to {row['reference_temperature_c']:.4g} \u00b0C, the reference temperature "
        "of the earlier run."
        for row in rows
        if row["corrected"]
    ]
    said += [f"Not corrected ({labels}): {reason}" for reason, labels in reasons_not_corrected(rows)]
    return list(dict.fromkeys(said))


def _run_of_row(when: str) -> Any:
    return lambda row: {"run": row[when]}


def _both_runs(field: str, title: str, column: str) -> list[Column]:
    """Return the columns of a value in both runs, each explained in its run."""
    return [
        Column(field.format(when), title.format(when), "number", explain=column, where=_run_of_row(when))
        for when in ("before", "after")
    ]


POWER_COLUMNS = [
    Column("label", "Window", "name", width=36),
    Column("sensor", "Sensor", "name", width=28),
    *_both_runs("power_{}_text", "Power {} (W)", "v1_power.corrected_power_w"),
    Column("power_by", "Change", "number", "compare.power_change"),
    *_both_runs("energy_{}_text", "Energy {} (J)", "v1_power.corrected_energy_j"),
    Column("energy_by", "Change", "number", "compare.energy_change"),
    *_both_runs("mean_power_{}_w", "Measured {} (W)", "v1_power.mean_power_w"),
    Column("beyond", "Significant", "flags"),
]
UNMATCHED_COLUMNS = [
    Column("kernel", "Kernel", "name", full="kernel_full", width=60, link=lambda row: history_path(row["kernel_full"])),
    Column("launches", "Launches", "number", "compare.launches"),
    Column("total_us", "Total (\u00b5s)", "number", "compare.total"),
    Column("mean_us", "Mean (\u00b5s)", "number", "compare.mean"),
]


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/compare", kept(show_comparison), "read", name="compare_page", heavy=True)
    add_page(app, "/compare/{pair:path}", redirect_pair, "read", name="compare_pair")
