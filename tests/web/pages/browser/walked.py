"""The pages that a browser walks: each with a text that must be seen on it. A new page is a new line here."""

from typing import NamedTuple


class Walked(NamedTuple):
    """A page: a name for its pictures, its path with ``{run}``, ``{board}`` and ``{launch}`` in it, a text on it."""

    name: str
    path: str
    see: str
    status: int = 200


# Routes that lead to another page, or are a part of one.
NO_PAGES = {
    "/compare/{pair:path}",
    "/history/{kernel:path}",
    "/commits/{commit:path}",
    "/docs/api/{operation}/ask",
    "/static/{name}",
}
WALKED = (
    Walked("runs", "/", "h200"),
    Walked("runs-none", "/?search=nothing+like+it", "No runs match"),
    Walked("runs-groups", "/?by=branch", "By project and branch"),
    Walked("settings", "/settings", "New token"),
    Walked("settings-schedules", "/settings/schedules", "New schedule"),
    Walked("settings-channels", "/settings/channels", "PROFSVC_CHANNELS"),
    Walked("settings-storage", "/settings/storage", "schema"),
    Walked("run", "/runs/{run}", "What to do first"),
    Walked("run-power", "/runs/{board}", "power.draw"),
    Walked("run-traced", "/runs/{traced}", "Sites with most cache lines from DRAM"),
    Walked("timeline", "/runs/{traced}/timeline", "by stream"),
    Walked("run-means", "/runs/{means}", "Kernel averages"),
    Walked("means", "/runs/{means}/means/scale(float*)", "Duration"),
    Walked("run-kernel", "/runs/{run}/kernels/10", "gemm"),
    Walked("rejects", "/runs/{measured}/rejects", "reason"),
    Walked("launch", "/runs/{run}/launches/{launch}", "Speed of light"),
    Walked("metrics", "/runs/{run}/launches/{launch}/metrics", "dram__bytes"),
    Walked("metrics-beside", "/runs/{run}/launches/{launch}/metrics?baseline=0&search=dram", "Baseline: #0"),
    Walked("source", "/runs/{sourced}/source", "a.cu line 7"),
    Walked("launch-source", "/runs/{sourced}/launches/{sourced_launch}/source", "LDG.E"),
    Walked("graph", "/runs/{traced}/graph", "Work-flow graph"),
    Walked("graph-arcs", "/runs/{traced}/graph?show=arcs", "target"),
    Walked("graph-warps", "/runs/{run}/graph?show=warps", "balance"),
    Walked("devices", "/devices", "Catalogue"),
    Walked("device", "/devices/NVIDIA%20H200", "Characterization"),
    Walked("models", "/models?run={run}", "needs a trace"),
    Walked("model", "/models/work-depth?example=1", "9.333"),
    Walked("model-wrong", "/models/work-depth?work=x", "not a finite number", 400),
    Walked("upload", "/upload?run=today", "Files"),
    Walked("power", "/runs/{board}/power", "Temperature coefficient"),
    Walked("power-plan", "/runs/{board}/power?load=500&duration=60&limit=45", "Temperature under a planned load"),
    Walked("power-night", "/runs/{night}/power", "Corrected to"),
    Walked("power-die", "/runs/{spacer}/power", "Heat map"),
    Walked("power-none", "/runs/{run}/power", "has no log of power", 404),
    Walked("history-choose", "/history", "Kernels of the newest runs"),
    Walked("history", "/history?kernel=gemm&project=lab", "+6."),
    Walked("history-power", "/history?kernel=gemm&quantity=power&project=lab", "Findings of nightly checks"),
    Walked("history-cut", "/history?kernel=saxpy&project=lab&points=5", "Showing the newest 5 points"),
    Walked("history-which", "/history?kernel=gemm_tiled", "Which kernel?", 400),
    Walked("history-none", "/history?kernel=nothing+like+it", "no kernel named", 404),
    Walked("compare-choose", "/compare", "Newest runs"),
    Walked("compare", "/compare?before={night_before}&after={night}", "+4."),
    Walked("compare-several", "/compare?run={run}&run={night_before}&run={night}", "Take as baseline"),
    Walked("compare-warned", "/compare?before={run}&after={night}", "Only before"),
    Walked("compare-none", "/compare?before={run}&after=nothing+like+it", "no run named", 404),
    Walked("sql", "/sql", "Views and columns"),
    Walked("sql-rows", "/sql?q=select+*+from+v1_criteria", "rows 1 to 200 of"),
    Walked("sql-chart", "/sql?q=select+name%2C+launches+from+v1_runs&chart=bars", "launches over name"),
    Walked("sql-values", "/sql?q=select+*+from+v1_runs+where+name+%3D+:name", "Give a value for :name"),
    Walked("sql-wrong", "/sql?q=select+nmae%0Afrom+v1_runs", "line 1, column 8", 400),
    Walked("findings", "/findings", "gemm duration"),
    Walked("finding", "/findings/{finding}", "uncorrected"),
    Walked("renames", "/renames", "Decide about two names"),
    Walked("reports", "/reports", "Summary"),
    Walked("report", "/reports/{report}", "Changes"),
    Walked("explain", "/explain/divergence?run={run}&launch={launch}", "active threads / (32 x warp instructions)"),
    Walked("docs", "/docs", "Tutorials"),
    Walked("api", "/docs/api", "Every"),
    Walked("api-view", "/docs/api/list_launches", "Columns of a row"),
    Walked("api-body", "/docs/api/save_query", "From a terminal"),
    Walked("docs-criteria", "/docs/nine-criteria", "Divergence"),
    Walked("docs-commands", "/docs/reference/commands", "profsvc upload"),
    Walked("login", "/login", "Token"),
    Walked("missing", "/runs/999999", "999999", 404),
)
