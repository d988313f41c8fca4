"""``work-depth``: time of an algorithm on a number of processors, and how many of them help."""

from profsvc.errors import UsageError, counted
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("processors", "steps", "speedup", "efficiency", "most_speedup")


def work_depth(values: Values) -> Answer:
    """Return time and speedup on each number of processors."""
    import numpy as np

    from profsvc.formulas.performance import work_depth as formulas

    work, depth, notes = values["work"], values["depth"], []
    if values["tree"] is not None:
        if work is not None or depth is not None:
            raise UsageError("tree gives work and depth; leave out work and depth, or the tree")
        tree = formulas.reduction_tree(values["tree"])
        work, depth = float(tree.work), float(tree.depth)
        notes.append(f"tree of {counted(values['tree'], 'value')}: work {work:g}, depth {depth:g}")
    if work is None or depth is None:
        raise UsageError("work and depth are missing; give both, or a tree")
    if depth > work:
        raise UsageError(f"depth is {depth:g} but work is {work:g}; the longest chain is a part of the work")
    processors = np.array(values["processors"])
    steps = formulas.brent_time(work, depth, processors).value
    most = formulas.max_speedup(processors, work, depth, values["excess"]).value
    parallelism = float(formulas.available_parallelism(work, depth).value)
    sequential = work / values["excess"]
    speedup = sequential / steps
    rows = [
        dict(zip(COLUMNS, row, strict=True))
        for row in zip(processors, steps, speedup, speedup / processors, most, strict=True)
    ]
    notes.append(f"{parallelism:.4g} operations can be executed at a time on average; more processors hardly help")
    scan = np.unique(np.geomspace(1, max(4 * parallelism, processors.max()), 60))
    figure = {
        "title": "Speedup over the number of processors", "x": "processors", "y": "speedup", "log": "xy",
        "series": [
            {"name": "predicted", "x": scan, "y": sequential / formulas.brent_time(work, depth, scan).value},
            {"name": "limit", "x": scan, "y": formulas.max_speedup(scan, work, depth, values["excess"]).value},
            {"name": "asked", "x": processors, "y": speedup, "points": True},
        ],
        "marks": [{"x": parallelism, "label": "available parallelism"}],
    }  # fmt: skip
    return Answer(rows, COLUMNS, notes, figure)


CALCULATORS = (
    Calculator(
        name="work-depth",
        title="Work and depth of an algorithm",
        question="How long does an algorithm take on a number of processors, and how many of them help?",
        source="Kim2012, section 2.2, equation 2.1",
        inputs=(
            Input("work", "Number of operations", default="", above=0),
            Input("depth", "Longest chain of operations that depend on each other", default="", above=0),
            Input("tree", "Instead of both: the number of values that a tree reduces", "integer", default="",
                  minimum=1),
            Input("processors", "Numbers of processors", "numbers", default="1,2,4,8,16,32", minimum=1),
            Input("excess", "Work divided by that of the best sequential algorithm", default="1", minimum=1),
        ),
        answer=work_depth,
        examples=(
            Example("The tree of 16 inputs of figure 2.3: 31 steps on one adder, 9.33 on six.",
                    {"work": "31", "depth": "5", "processors": "1,6"}),
            Example("The same tree by its number of values.", {"tree": "16", "processors": "1,6"}),
        ),
        functions=(
            "performance.work_depth.brent_time", "performance.work_depth.available_parallelism",
            "performance.work_depth.max_speedup", "performance.work_depth.reduction_tree",
        ),
        accuracy="a memory load of an H200 without depth, 1 to 132 SMs: took 1.00 to 1.85 times the steps (median "
        "1.2), as the SMs share the bandwidth",
        has_figure=True,
    ),
)  # fmt: skip
