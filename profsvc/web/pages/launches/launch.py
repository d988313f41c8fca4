"""``/runs/{run}/launches/{launch}``: details of one launch: bottleneck, potential speedup and counters."""

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store, views
from profsvc.analysis.power.components import MODEL as COMPONENTS
from profsvc.errors import NotFoundError
from profsvc.reports.ratios import factor
from profsvc.reports.rows import cell
from profsvc.reports.text.launches.source_lines import file_names, summary
from profsvc.reports.text.models.antipatterns import ratio as measured_ratio
from profsvc.reports.text.models.launch_models import agreement
from profsvc.views.launches import breakdown as parts
from profsvc.views.launches import source_lines as source_view
from profsvc.views.models import antipatterns
from profsvc.views.models import plots as model_plots
from profsvc.views.power import components
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.figures import Figure, live_figure, missing_figure
from profsvc.web.pages.rendering.kept_pages import kept
from profsvc.web.pages.rendering.page import Links, page, path_to
from profsvc.web.pages.rendering.power_tables import unit_power_table
from profsvc.web.pages.rendering.tables import Column, Row, plain_columns
from profsvc.web.pages.runs.run import criteria_rows, launch_or_run_of_row, run_id_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

CRITERIA_COLUMNS = (
    Column("title", "criterion", "noted"),
    Column("value", "value", "bar", lambda row: row["criterion"], launch_or_run_of_row),
    Column("share", "share of time", "percent", "v1_criteria.share", launch_or_run_of_row),
    Column("speedup", "speedup", "speedup", "v1_criteria.speedup", launch_or_run_of_row),
)
OTHER_FORM_COLUMNS = (
    Column("title", "criterion"),
    Column("value", "value", "number", lambda row: row["criterion"], launch_or_run_of_row),
    Column("value_conditional", "conditional", "number", "v1_criteria.value_conditional", launch_or_run_of_row),
    Column("value_as_published", "as published", "number", "v1_criteria.value_as_published", launch_or_run_of_row),
)
UNIT_COLUMNS = (
    Column("title", "unit", link=lambda row: f"/explain/{row['quantity']}"),
    Column("share", "useful share of time", "part", "launch.useful_share", launch_or_run_of_row),
    Column("value", "useful time", "duration", "launch.useful_ns", launch_or_run_of_row),
    Column("form", "peak used"),
)
RULE_COLUMNS = (
    Column("rule", "rule", "name"),
    Column("kind", "kind"),
    Column(
        "estimated_saving_fraction", "time saved", "percent", "v1_rules.estimated_saving_fraction", launch_or_run_of_row
    ),
    Column("estimated_speedup", "speedup", "speedup", "v1_rules.estimated_speedup", launch_or_run_of_row),
    Column("cause", "cause here"),
    Column("cause_saving_fraction", "time saved here", "percent", "v1_causes.saving_fraction", launch_or_run_of_row),
    Column("difference", "why they differ"),
    Column("section", "section", "name"),
)


def _model_explanation(row: Row) -> str:
    """Return what explains a row of a model: an input is explained by its name, a result by its model."""
    if row["model"] == INPUTS:
        return str(row["quantity"]) if row["quantity"] in specs.model_inputs() else "v1_models.value"
    return str(row["model"]) if row["model"] in specs.models() else "v1_models.value"


def _model_name(row: Row) -> str:
    return str(row["model"])


def _launch_of_row(row: Row) -> Row:
    """Return the launch of the page of a row."""
    return dict(row["where"])


MODEL_COLUMNS = (
    Column("title", "model"),
    Column("quantity", "quantity"),
    Column("value", "value", "number", _model_explanation, launch_or_run_of_row),
    Column("unit", "unit", "unit"),
    Column("label", "meaning"),
    Column("form", "form or origin"),
    Column("flags", "warnings", "flags"),
    Column("reason", "reason"),
)
TIME_COLUMNS = (
    Column("title", "model"),
    Column("time_ns", "predicted", "duration", _model_name, _launch_of_row),
    Column("ratio", "predicted / measured", "speedup", "launch.of_measured", _launch_of_row),
    Column("typical", "typical error"),
    Column("kernels", "other kernels"),
)
BOUND_COLUMNS = (Column("title", "model"), Column("bound", "limited by"))
SPEEDUP_COLUMNS = (Column("title", "model"), Column("speedup", "speedup", "speedup", _model_name, _launch_of_row))
MISSING_COLUMNS = (Column("title", "model"), Column("reason", "reason"))
PATTERN_COLUMNS = (
    Column("title", "pattern"),
    Column("metric", "metric"),
    Column("measured", "measured", "text", "antiparallel", _launch_of_row),
    Column("lost_share", "lost", "part", "antiparallel", _launch_of_row),
    Column("saving_fraction", "time saved", "percent", "v1_causes.saving_fraction", _launch_of_row),
    Column("remedy", "remedy"),
    Column("reason", "reason"),
)
TABLES = {
    "criteria": CRITERIA_COLUMNS,
    "other_forms": OTHER_FORM_COLUMNS,
    "units": UNIT_COLUMNS,
    "rules": RULE_COLUMNS,
    "models": MODEL_COLUMNS,
    "times": TIME_COLUMNS,
    "bounds": BOUND_COLUMNS,
    "speedups": SPEEDUP_COLUMNS,
    "missing": MISSING_COLUMNS,
    "patterns": PATTERN_COLUMNS,
}
INPUTS = "inputs"
# Models with their own section on the page.
MODELS_SHOWN_ABOVE = {"useful_work", "waste"}


def show_launch(request: Request) -> Response:
    """Show a launch."""
    args, run_id = RequestArgs(request), run_id_of(request)
    args.reject_unknown()
    text = request.path_params["launch"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"{text[:60]!r} is not a launch number; see the launches of run {run_id}")
    view = views.launch(app_state(request).engine, run_id, f"id:{text}")
    return _launch_page(request, view["run"], view["launches"][0], _links(request, run_id, int(text)))


def show_kernel_means(request: Request) -> Response:
    """Show a kernel of which only averages over its launches are known."""
    args, run_id, name = RequestArgs(request), run_id_of(request), request.path_params["kernel"]
    args.reject_unknown()
    view = views.launch(app_state(request).engine, run_id, name)
    one = next((one for one in view["launches"] if one["launch"]["kernel"] == name), None)
    if one is None or one["launch"]["launch_id"] is not None:
        raise NotFoundError(f"run {run_id} has no averages of a kernel {name[:100]!r}; see the kernels of the run")
    links = Links(path_to(request, f"/v1/runs/id:{run_id}", {"kernel": name}))
    return _launch_page(request, view["run"], one, links)


def _links(request: Request, run_id: int, launch_id: int) -> Links:
    query = {"run_id": run_id, "launch_id": launch_id}
    return Links(
        path_to(request, f"/v1/runs/id:{run_id}", {"kernel": f"id:{launch_id}"}),
        path_to(request, "/v1/criteria.csv", query),
        f"select * from v1_criteria where run_id = {run_id} and launch_id = {launch_id}",
    )


def _launch_page(request: Request, run: dict[str, Any], one: dict[str, Any], links: Links) -> Response:
    row, bound = one["launch"], one["potential"] or {}
    launch_id = row["launch_id"]
    where = {} if launch_id is None else {"run": run["run_id"], "launch": launch_id}
    engine = app_state(request).engine
    titles = {unit["quantity"]: unit["title"] for unit in one["units"]}
    index = "" if row["launch_index"] is None else f"#{row['launch_index']} "
    models = [] if launch_id is None else store.launch_rows(engine, "v1_models", run["run_id"], [launch_id])
    plots = None if launch_id is None else model_plots.Plots(engine, run["run_id"], f"id:{launch_id}")
    return page(
        request, "launches/launch.html", f"{index}{row['kernel_short']}", links=links, run=run, one=one, launch=row,
        where=where, bound=bound,
        limit=titles.get(bound.get("bound"), bound.get("bound")),
        ideal_limit=titles.get(bound.get("ideal_bound"), bound.get("ideal_bound")),
        criteria=criteria_rows(one["criteria"], one["of_run"]), units=_unit_rows(one),
        rules=_rule_rows(one["rules"]), rule_messages=[rule for rule in one["rules"] if rule["message"]],
        parts=parts.breakdown(engine, launch_id), facts=_launch_facts(row, where),
        models=_model_rows(models), model_tables=_model_tables(one.get("models"), where), tables=TABLES,
        figures=launch_figures(request, plots) if plots else [],
        patterns=_pattern_rows(plots, where) if plots and not one["reason"] else [],
        units_of_power=_unit_powers(engine, run["run_id"], row),
        source=_source(engine, run["run_id"], launch_id),
    )  # fmt: skip


def _source(engine: Engine, run_id: int, launch_id: int | None) -> dict[str, Any] | None:
    """Return the source line where most can be saved; None without a source page, empty without samples."""
    if launch_id is None or not store.has_source(engine, launch_id):
        return None
    lines = source_view.source_lines(engine, run_id, f"id:{launch_id}", 1)["lines"]
    told = [one for one in lines if one["samples"] or one["time_fraction"]]
    if not told:
        return {}
    first = told[0]
    return {"place": summary(first, file_names([first["file"]])), "text": first["source_text"] or ""}


def _unit_powers(engine: Engine, run_id: int, launch: Row) -> dict[str, Any] | None:
    """Return the power of each unit of the kernel of a launch, as stored; None if it is unknown."""
    names = dict.fromkeys((launch["kernel"], launch["kernel_short"]))
    found = (store.select(engine, "v1_power_models", run_id=run_id, model=COMPONENTS, window=name) for name in names)
    return unit_power_table(components.by_kernel(next((rows for rows in found if rows), [])))


def _model_tables(found: dict[str, Any] | None, where: Row) -> dict[str, Any] | None:
    """Return the tables of the models, the error record of each predicted time, and sentences on their agreement."""
    if found is None:
        return None
    rows = []
    for row in found["times"]:
        record = row["record"] or {"factor": None, "kernels": None, "kind": None}
        error = {"typical": factor(record["factor"]), "kernels": record["kernels"], "kind": record["kind"]}
        rows.append(row | error | {"where": where})
    sentences = [f"{text[0].upper()}{text[1:]}." for text in agreement(found["agreement"])]
    return found | {
        "agreement_sentences": sentences,
        "times": rows,
        "speedups": [row | {"where": where} for row in found["speedups"]],
    }


def _pattern_rows(plots: model_plots.Plots, where: Row) -> list[Row]:
    """Return the patterns of a launch, what costs most first."""
    base = plots.base
    rows = antipatterns.largest(antipatterns.with_inputs(plots.engine, base.launch, base.counters, base.inputs))
    return [{**row, "measured": measured_ratio(row), "where": where} for row in rows]


FIGURE_TITLES = {"roofline": "Roofline", "benefit": "Benefit chart", "warps": "Warps per SM", "sms": "Active SMs"}
# Column of a figure's data -> its explanation.
FIGURE_EXPLANATIONS = {
    "launch": "figure.launch", "duration_us": "figure.duration_us", "flop_per_s": "figure.flop_per_s",
    **{f"intensity_{level}": "figure.intensity" for level in model_plots.LEVELS},
    "attainable": "figure.attainable", "reached": "figure.reached", "warps": "figure.warps", "sms": "figure.sms",
    **dict.fromkeys(("memory", "memory_after_overlap", "computation"), "figure.cost"),
    **dict.fromkeys(model_plots.BENEFITS, "figure.benefit"),
    **dict.fromkeys(("MWP", "CWP"), "figure.parallelism"), "power_w": "figure.power_w",
    **dict.fromkeys(("mwp_cwp_speedup", "throughput_speedup", "mwp_cwp", "throughput"), "figure.speedup"),
    **dict.fromkeys(("per_watt_mwp_cwp", "per_watt_throughput"), "figure.per_watt"),
}  # fmt: skip
# Kind of a figure -> its text alternative.
FIGURE_ALT_TEXTS = {
    "roofline": "FLOP rate of the launch against its arithmetic intensity, with the memory and compute ceilings.",
    "benefit": "Memory and computation cost of the launch, before and after overlap.",
    "warps": "Memory and computation parallelism (MWP, CWP) and speed against the number of warps per SM.",
    "sms": "Speed, and speed per watt if the power is known, against the number of active SMs.",
}


def launch_figures(request: Request, plots: model_plots.Plots) -> list[Figure]:
    """Return the figures of a launch; for each kind the plot, or the reason why it is missing."""
    found = []
    for kind, shows in FIGURE_ALT_TEXTS.items():
        try:
            data = plots.plot(kind)
        except NotFoundError as error:
            found.append(missing_figure(FIGURE_TITLES[kind], str(error)))
            continue
        path, query = f"/v1/runs/id:{plots.run_id}/plots/{kind}", {"kernel": plots.kernel}
        found.append(
            live_figure(data["title"], kind, path_to(request, path, query), path_to(request, f"{path}.svg", query),
                        notes=data["notes"], rows=data["rows"], description=shows,
                        columns=plain_columns(data["rows"], ("launch_id",), FIGURE_EXPLANATIONS))
        )  # fmt: skip
    return found


def _model_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results and inputs of the models with titles, except models with their own section."""
    titles = {name: model.title for name, model in specs.models().items()} | {INPUTS: "Model inputs"}
    return [
        row | {"title": titles.get(row["model"], row["model"])}
        for row in rows
        if row["model"] not in MODELS_SHOWN_ABOVE
    ]


def _unit_rows(one: dict[str, Any]) -> list[dict[str, Any]]:
    duration = one["launch"]["duration_ns"]
    return [
        row | {"share": row["value"] / duration if duration and row["value"] is not None else None}
        for row in one["units"]
        if row["value"] is None or row["value"] > 0
    ]


def _rule_rows(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the estimates of Nsight Compute, largest saving first."""
    known = [rule for rule in rules if rule["estimated_saving_fraction"] is not None]
    return sorted(known, key=lambda rule: (rule["kind"] != "global", -rule["estimated_saving_fraction"]))


def _launch_facts(row: dict[str, Any], where: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the properties of a launch; numbers with their explanation."""

    def shape(what: str) -> str:
        sizes = [row.get(f"{what}_{axis}") for axis in "xyz"]
        return "" if None in sizes else " \u00d7 ".join(map(str, sizes))

    named = ("device", "tool", "host")
    own = (("stream", "stream"), ("line in file", "line")) if where else ()
    return [
        ("grid", shape("grid"), "grid_blocks", where),
        ("block", shape("block"), "block_threads", where),
        ("registers per thread", cell(row.get("registers_per_thread")), "registers_per_thread", where),
        *((name, cell(row.get(name))) for name in named),
        ("process", cell(row.get("process_name"))),
        *((title, cell(row.get(key)), f"v1_launches.{key}", {"run": where["run"], "row": where["launch"]})
          for title, key in own),
    ]  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/runs/{run}/launches/{launch}", kept(show_launch), "read", name="launch_page")
    add_page(app, "/runs/{run}/means/{kernel:path}", kept(show_kernel_means), "read", name="means_page")
