"""``/runs/{run}/launches/{launch}``: one launch, opened: what limits it, what it could gain, where a number is from."""

from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store, views
from profsvc.errors import NotFoundError
from profsvc.reports import model_plots as drawing
from profsvc.reports.ratios import factor
from profsvc.reports.rows import cell
from profsvc.views import breakdown as parts
from profsvc.views import model_plots
from profsvc.web.asked import Asked
from profsvc.web.pages.figures import Figure, figure, without
from profsvc.web.pages.frame import Links, page, path_to
from profsvc.web.pages.run import about, criteria_rows, number_of
from profsvc.web.pages.tables import Column, Row, columns_of
from profsvc.web.routes import add_page
from profsvc.web.site import site_of

CRITERIA = (
    Column("title", "criterion", "noted"),
    Column("value", "value", "bar", lambda row: row["criterion"], about),
    Column("share", "share of time", "percent", "v1_criteria.share", about),
    Column("speedup", "speedup", "speedup", "v1_criteria.speedup", about),
    Column("value_as_published", "as published", "number", "v1_criteria.value_as_published", about),
)
UNITS = (
    Column("title", "unit", link=lambda row: f"/explain/{row['quantity']}"),
    Column("share", "useful, of the run time", "part", "launch.useful_share", about),
    Column("value", "useful time", "duration", "launch.useful_ns", about),
    Column("form", "against"),
)
RULES = (
    Column("rule", "NVIDIA's rule", "name"),
    Column("kind", "kind"),
    Column("estimated_saving_fraction", "saves", "percent", "v1_rules.estimated_saving_fraction", about),
    Column("estimated_speedup", "speedup", "speedup", "v1_rules.estimated_speedup", about),
    Column("section", "section", "name"),
)


def _model(row: Row) -> str:
    """Return what explains a row of the models: an input by itself, an answer by its model."""
    if row["model"] == INPUTS:
        return str(row["quantity"]) if row["quantity"] in specs.model_inputs() else "v1_models.value"
    return str(row["model"]) if row["model"] in specs.models() else "v1_models.value"


def _of_model(row: Row) -> str:
    return str(row["model"])


def _here(row: Row) -> Row:
    """Return the launch whose page a row stands on."""
    return dict(row["where"])


MODELS = (
    Column("title", "model"),
    Column("quantity", "quantity"),
    Column("value", "value", "number", _model, about),
    Column("unit", "unit", "name"),
    Column("label", "which is"),
    Column("form", "form or origin"),
    Column("flags", "beware", "flags"),
    Column("reason", "why not"),
)
TIMES = (
    Column("title", "model"),
    Column("time_ns", "foretells", "duration", _of_model, _here),
    Column("ratio", "of the measured", "speedup", "launch.of_measured", _here),
    Column("typical", "typical error"),
    Column("kernels", "over other kernels"),
)
BOUNDS = (Column("title", "model"), Column("bound", "limited by"))
SPEEDUPS = (Column("title", "model"), Column("speedup", "speedup", "speedup", _of_model, _here))
MISSING = (Column("title", "model"), Column("reason", "why it has no answer"))
TABLES = {
    "criteria": CRITERIA, "units": UNITS, "rules": RULES, "models": MODELS, "times": TIMES, "bounds": BOUNDS,
    "speedups": SPEEDUPS, "missing": MISSING,
}  # fmt: skip
INPUTS = "inputs"
# Models that have a part of the page to themselves.
SHOWN_ABOVE = {"useful_work", "waste"}


def launch(request: Request) -> Response:
    """Show a launch."""
    asked, run_id = Asked(request), number_of(request)
    asked.done()
    text = request.path_params["launch"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"{text[:60]!r} is no number of a launch; open run {run_id} to see its launches")
    view = views.launch(site_of(request).engine, run_id, f"id:{text}")
    return _page(request, view["run"], view["launches"][0], _links(request, run_id, int(text)))


def means(request: Request) -> Response:
    """Show a kernel that is known by the means over its launches."""
    asked, run_id, name = Asked(request), number_of(request), request.path_params["kernel"]
    asked.done()
    view = views.launch(site_of(request).engine, run_id, name)
    one = next((one for one in view["launches"] if one["launch"]["kernel"] == name), None)
    if one is None or one["launch"]["launch_id"] is not None:
        raise NotFoundError(f"run {run_id} has no means of a kernel {name[:100]!r}; open the run to see its kernels")
    links = Links(path_to(request, f"/v1/runs/{run_id}", {"kernel": name}))
    return _page(request, view["run"], one, links)


def _links(request: Request, run_id: int, launch_id: int) -> Links:
    query = {"run_id": run_id, "launch_id": launch_id}
    return Links(
        path_to(request, f"/v1/runs/{run_id}", {"kernel": f"id:{launch_id}"}),
        path_to(request, "/v1/criteria.csv", query),
        f"select * from v1_criteria where run_id = {run_id} and launch_id = {launch_id}",
    )


def _page(request: Request, run: dict[str, Any], one: dict[str, Any], links: Links) -> Response:
    row, bound = one["launch"], one["potential"] or {}
    launch_id = row["launch_id"]
    where = {} if launch_id is None else {"run": run["run_id"], "launch": launch_id}
    engine = site_of(request).engine
    titles = {unit["quantity"]: unit["title"] for unit in one["units"]}
    index = "" if row["launch_index"] is None else f"#{row['launch_index']} "
    models = [] if launch_id is None else store.select_of(engine, "v1_models", run["run_id"], [launch_id])
    return page(
        request, "launch.html", f"{index}{row['kernel_short']}", links=links, run=run, one=one, launch=row,
        where=where, bound=bound,
        limit=titles.get(bound.get("bound"), bound.get("bound")),
        ideal_limit=titles.get(bound.get("ideal_bound"), bound.get("ideal_bound")),
        criteria=criteria_rows(one["criteria"], one["of_run"]), units=_units(one),
        rules=_rules(one["rules"]), said=[rule for rule in one["rules"] if rule["message"]],
        parts=parts.breakdown(engine, launch_id), facts=_facts(row, where),
        models=_models(models), beside=_beside(one.get("models"), where), tables=TABLES,
        figures=figures_of(request, run["run_id"], launch_id),
    )  # fmt: skip


def _beside(found: dict[str, Any] | None, where: Row) -> dict[str, Any] | None:
    """Return models side by side, with the record of each time in words, and of which launch they are."""
    if found is None:
        return None
    rows = []
    for row in found["times"]:
        record = row["record"] or {"factor": None, "kernels": None, "kind": None}
        said = {"typical": factor(record["factor"]), "kernels": record["kernels"], "kind": record["kind"]}
        rows.append(row | said | {"where": where})
    return found | {"times": rows, "speedups": [row | {"where": where} for row in found["speedups"]]}


TITLES = {"roofline": "Roofline", "benefit": "Benefit chart", "warps": "Warps on an SM", "sms": "SMs at work"}
# Number of a figure's table -> what explains it.
NUMBERS = {
    "launch": "figure.launch", "duration_us": "figure.duration_us", "flop_per_s": "figure.flop_per_s",
    **{f"intensity_{level}": "figure.intensity" for level in model_plots.LEVELS},
    "attainable": "figure.attainable", "reached": "figure.reached", "warps": "figure.warps", "sms": "figure.sms",
    **dict.fromkeys(("memory", "memory_after_overlap", "computation"), "figure.cost"),
    **dict.fromkeys(model_plots.BENEFITS, "figure.benefit"),
    **dict.fromkeys(("MWP", "CWP"), "figure.parallelism"), "power_w": "figure.power_w",
    **dict.fromkeys(("mwp_cwp_speedup", "throughput_speedup", "mwp_cwp", "throughput"), "figure.speedup"),
    **dict.fromkeys(("per_watt_mwp_cwp", "per_watt_throughput"), "figure.per_watt"),
}  # fmt: skip
# Kind of a figure -> what it shows, for who does not see it.
FIGURES = {
    "roofline": "The rate of the launch against its operations a byte, below the ceilings of memory and arithmetic.",
    "benefit": "The cost of memory and of computation of the launch, before and after they overlap.",
    "warps": "The parallelism of memory and of computation, and the speed, against the warps on an SM.",
    "sms": "The speed, and the speed per watt where the power is known, against the SMs at work.",
}


def figures_of(request: Request, run_id: int, launch_id: int | None) -> list[Figure]:
    """Return the figures of a launch: of each kind the picture, or why there is none."""
    found = []
    for kind, shows in FIGURES.items() if launch_id is not None else ():
        try:
            data = model_plots.plot(site_of(request).engine, run_id, kind, f"id:{launch_id}")
        except NotFoundError as error:
            found.append(without(TITLES[kind], str(error)))
            continue
        found.append(
            figure(kind, data["title"], partial(drawing.draw, data), data, description=shows, notes=data["notes"],
                   rows=data["rows"], columns=columns_of(data["rows"], ("launch_id",), NUMBERS))
        )  # fmt: skip
    return found


def _models(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers of the models and their inputs, with titles; those shown above are left out."""
    titles = {name: model.title for name, model in specs.models().items()} | {INPUTS: "Inputs of the models"}
    return [row | {"title": titles.get(row["model"], row["model"])} for row in rows if row["model"] not in SHOWN_ABOVE]


def _units(one: dict[str, Any]) -> list[dict[str, Any]]:
    duration = one["launch"]["duration_ns"]
    return [
        row | {"share": row["value"] / duration if duration and row["value"] is not None else None}
        for row in one["units"]
        if row["value"] is None or row["value"] > 0
    ]


def _rules(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what NVIDIA estimates, the largest saving first."""
    known = [rule for rule in rules if rule["estimated_saving_fraction"] is not None]
    return sorted(known, key=lambda rule: (rule["kind"] != "global", -rule["estimated_saving_fraction"]))


def _facts(row: dict[str, Any], where: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return what is known of how a launch was made; numbers with what explains them."""

    def shape(what: str) -> str:
        sizes = [row.get(f"{what}_{axis}") for axis in "xyz"]
        return "" if None in sizes else " \u00d7 ".join(map(str, sizes))

    named = ("device", "tool", "host")
    own = (("stream", "stream"), ("line of the file", "line")) if where else ()
    return [
        ("grid", shape("grid"), "grid_blocks", where),
        ("block", shape("block"), "block_threads", where),
        ("registers a thread", cell(row.get("registers_per_thread")), "registers_per_thread", where),
        *((name, cell(row.get(name))) for name in named),
        ("process", cell(row.get("process_name"))),
        *((title, cell(row.get(key)), f"v1_launches.{key}", {"run": where["run"], "row": where["launch"]})
          for title, key in own),
    ]  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/runs/{run}/launches/{launch}", launch, "read", name="launch_page")
    add_page(app, "/runs/{run}/means/{kernel:path}", means, "read", name="means_page")
