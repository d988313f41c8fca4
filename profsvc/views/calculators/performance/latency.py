"""``latency-hiding`` and ``simt-usage``: warps that hide a wait, and lanes that do work."""

from profsvc.errors import UsageError, counted
from profsvc.views.calculators.declaration import QUANTITIES, Answer, Calculator, Example, Input, Values, quantity

HIDING = ("warps", "exposed_cycles", "exposed_share", "hidden", "pipeline_full")
MAX_WARPS = 32


def latency_hiding(values: Values) -> Answer:
    """Return what each number of warps leaves exposed."""
    import numpy as np

    from profsvc.formulas.performance import latency as formulas

    M, C, ilp = values["memory"], values["computation"], values["ilp"]
    needed = float(formulas.warps_for_hiding(M, C))
    issue = float(formulas.issue_cycles(values["lanes"], values["warp"]))
    pipeline = float(formulas.warps_for_pipeline(values["stages"], issue))
    warps = np.array(values["warps"] or [*range(1, 1 + int(min(MAX_WARPS, max(needed, pipeline))))])
    exposed = formulas.exposed(M, C, warps * ilp)
    cells = (warps, exposed, exposed / M, exposed == 0, warps * ilp >= pipeline)
    rows = [dict(zip(HIDING, row, strict=True)) for row in zip(*cells, strict=True)]
    notes = [
        f"{needed:g} warps hide a memory period of {M:g} cycles behind {C:g} of computation, "
        f"{np.ceil(needed / ilp):g} with {ilp:g} independent instructions each",
        f"an instruction of a warp issues in {counted(format(issue, 'g'), 'cycle')}, so {pipeline:g} warps "
        f"({pipeline * values['warp']:g} threads) fill {values['stages']:g} stages",
    ]
    scan = np.arange(1, max(2.0, needed + 2, warps.max()) + 1)
    figure = {
        "title": "Exposed part of a memory period", "x": "warps", "y": "exposed cycles",
        "series": [{"name": "exposed", "x": scan, "y": formulas.exposed(M, C, scan * ilp)}],
        "marks": [{"x": float(np.ceil(needed / ilp)), "label": "all hidden"}],
    }  # fmt: skip
    return Answer(rows, HIDING, notes, figure)


def simt_usage(values: Values) -> Answer:
    """Return the share of lanes that work, and of loop iterations that threads needed."""
    import numpy as np

    from profsvc.formulas.performance import latency as formulas

    if values["active"] is None and values["trips"] is None:
        raise UsageError("active and trips are missing; give the active lanes of each cycle, the iterations of each "
                         "thread, or both")  # fmt: skip
    rows, notes = [], []
    if values["active"] is not None:
        active, lanes = np.array(values["active"]), values["lanes"]
        if (active > lanes).any():
            raise UsageError(f"active: {active.max():g} lanes are more than the {lanes:g} that there are")
        share = float(formulas.simt_usage(active, lanes).value)
        slots = lanes * len(active)
        rows += [
            quantity("usage", share, "1", "share of the slots of all lanes in which a thread was active"),
            quantity("slots_used", active.sum(), "slot", f"of {slots:g} in {len(active)} cycles"),
            quantity("slots_lost", slots - active.sum(), "slot", "lanes that were off"),
            quantity("speedup", 1 / share if share else None, "1", "if all lanes worked"),
        ]
    if values["trips"] is not None:
        trips, width = np.array(values["trips"]), int(values["warp"])
        warps = [trips[begin : begin + width] for begin in range(0, len(trips), width)]
        each = [float(formulas.trip_balance(one).value) for one in warps]
        longest = np.array([one.max() for one in warps])
        weight = longest * np.array([len(one) for one in warps])
        whole = float(trips.sum() / weight.sum()) if weight.sum() else 1.0
        rows += [
            quantity("trip_balance", whole, "1", f"mean over largest number of iterations, of {len(warps)} warps"),
            quantity("worst_warp", min(each), "1", f"warp {int(np.argmin(each)) + 1}"),
            quantity("iterations", float(longest.sum()), "1", "that warps execute: those of their longest thread"),
        ]
        ordered = np.sort(trips)[::-1]
        sorted_iterations = sum(ordered[begin] for begin in range(0, len(ordered), width))
        notes.append(f"with threads sorted by their iterations warps would execute {sorted_iterations:g}")
    return Answer(rows, QUANTITIES, notes)


CALCULATORS = (
    Calculator(
        name="latency-hiding",
        title="Warps that hide latency",
        question="How many warps hide a wait for memory, and how many keep the pipeline full?",
        source="Lemeire2017, latency hiding and warp execution",
        inputs=(
            Input("memory", "Memory period of a warp, in cycles", above=0),
            Input("computation", "Computation period of a warp, in cycles", above=0),
            Input("warps", "Numbers of warps", "numbers", default="", minimum=1),
            Input("ilp", "Independent instructions of a warp, which count like further warps", default="1", minimum=1),
            Input("stages", "Depth of the pipeline, in cycles", default="24", above=0),
            Input("lanes", "Lanes that take an instruction of a warp", default="8", above=0),
            Input("warp", "Threads of a warp", default="32", above=0),
        ),
        answer=latency_hiding,
        examples=(
            Example("A memory period of three computation periods; 24 stages and 8 lanes.",
                    {"memory": "3", "computation": "1"}),
        ),
        functions=(
            "performance.latency.warps_for_hiding", "performance.latency.exposed", "performance.latency.issue_cycles",
            "performance.latency.warps_for_pipeline",
        ),
        accuracy="times with up to 64 warps per SM from those of the fewest, 5 kernels of an H200: typical factor "
        "1.14; 4.8 at worst, where the bandwidth limits; the warps that fill the pipeline: within 7 to 13 % of the "
        "best time",
        has_figure=True,
    ),
    Calculator(
        name="simt-usage",
        title="Usage of SIMT lanes",
        question="Which share of the lanes works in branches, and in loops of unequal length?",
        source="Lemeire2017, SIMT conditional processing and traversal of trees",
        inputs=(
            Input("active", "Active lanes in each cycle or instruction", "numbers", default="", minimum=0),
            Input("lanes", "Lanes that there are", default="32", above=0),
            Input("trips", "Iterations of each thread, in the order of threads", "numbers", default="", minimum=0),
            Input("warp", "Threads of a warp", "integer", default="32", minimum=1, maximum=64),
        ),
        answer=simt_usage,
        examples=(
            Example("A condition and a branch for each half of a warp on 8 lanes: 64 of 96 slots.",
                    {"active": "8,8,8,8,8,8,0,0,0,0,8,8", "lanes": "8"}),
            Example("Four threads, of which one walks a deeper tree.", {"trips": "1,1,1,5", "warp": "4"}),
        ),
        functions=("performance.latency.simt_usage", "performance.latency.trip_balance"),
        accuracy="of a launch both are measured: profsvc antipatterns RUN --kernel 0",
    ),
)  # fmt: skip
