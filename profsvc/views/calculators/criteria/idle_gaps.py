"""``idle-gaps``: the share of the time in which a device works, from any list of start times and durations."""

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("gap", "before", "share", "speedup_without_it")
KINDS = ("kernel", "copy")


def idle_gaps(values: Values) -> Answer:
    """Return the longest gaps, and what all of them cost."""
    import numpy as np

    from profsvc.formulas.criteria import host_sync
    from profsvc.formulas.numerics.flags import Flag

    rows = values["events"]
    start, duration = (np.array([row[name] for row in rows]) for name in ("start", "duration"))
    is_copy = np.array([row["kind"] == "copy" for row in rows])
    busy = "kernels+copies" if values["busy"] == "kernels and copies" else "kernels"
    found = host_sync(start, duration, is_copy=is_copy, busy=busy)
    if np.isnan(found.value):
        raise UsageError("events: all are copies; name kernels 'kernel' in the column kind, or leave it out")
    span = float(found.span)
    longest = np.argsort(-found.gaps, kind="stable")[: values["longest"]]
    listed = [
        {"gap": found.gaps[place], "before": rows[place]["name"] or f"event at {start[place]:g}",
         "share": found.gaps[place] / span, "speedup_without_it": span / (span - found.gaps[place])}
        for place in longest if found.gaps[place] > 0
    ]  # fmt: skip
    notes = [
        f"the device works in {float(found.value):.1%} of {span:g}; without all gaps the same work takes "
        f"{float(found.busy):g}: {float(found.speedup):.3g} times faster"
    ]
    if found.flags & Flag.OVERLAP:
        notes.append(f"on average {float(found.concurrency):.3g} events run at a time")
    if not listed:
        listed = [dict.fromkeys(COLUMNS)]
        notes.append("there is no gap")
    return Answer(listed, COLUMNS, notes)


CALCULATORS = (
    Calculator(
        name="idle-gaps",
        title="Gaps between kernels in a list of times",
        question="Which share of the time does the device wait between kernels, and which gaps cost most?",
        source="FineGrained2016, section IV-A",
        inputs=(
            Input(
                "events",
                "Kernels and copies of one device, in any unit of time",
                "table",
                columns=(
                    Input("start", "Start"),
                    Input("duration", "Duration, in the unit of the start", minimum=0),
                    Input("kind", "What it is", "choice", default="kernel", choices=KINDS),
                    Input("name", "Name", "text", default=""),
                ),
            ),
            Input("busy", "What counts as work", "choice", default="kernels",
                  choices=("kernels", "kernels and copies")),
            Input("longest", "Number of longest gaps to list", "integer", default="10", minimum=1, maximum=1000),
        ),
        answer=idle_gaps,
        examples=(
            Example("Two kernels overlap, and a third starts late: 75 % of the time.",
                    {"events": "start,duration,name\n0,10,load\n5,15,solve\n30,10,store\n"}),
        ),
        functions=("criteria.host_sync",),
        accuracy="exact for the times given",
    ),
)  # fmt: skip
