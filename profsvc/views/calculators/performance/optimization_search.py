"""``next-optimization``: which set of optimizations to measure next, by the greedy search."""

from typing import Any

from profsvc.errors import UsageError
from profsvc.views.calculators.declaration import Answer, Calculator, Example, Input, Values

COLUMNS = ("stage", "optimizations", "performance", "state")
NONE = "none"


def next_optimization(values: Values) -> Answer:
    """Follow the greedy search through the measured sets, up to the first stage that lacks one."""
    import numpy as np

    from profsvc.formulas.performance.work_depth import accept, next_candidates

    names = [name for name in values["versions"][0] if name != "performance"]
    measured = _measured(values["versions"], names)
    chosen, rows, notes = np.zeros(len(names), dtype=np.bool_), list[dict[str, Any]](), list[str]()
    for stage in range(1, len(names) + 1):
        candidates = next_candidates(chosen)
        scores = [measured.get(tuple(one), np.nan) for one in candidates]
        open_ones = [one for one in candidates if tuple(one) not in measured]
        found = accept(chosen, [measured[tuple(chosen)], *scores])
        for one, score in zip(candidates, scores, strict=True):
            accepted = not open_ones and found.added >= 0 and bool((one == found.chosen).all())
            state = "measure next" if tuple(one) not in measured else "accepted" if accepted else "measured"
            rows.append({"stage": stage, "optimizations": _words(one, names), "performance": score, "state": state})
        if open_ones:
            notes.append(f"measure {len(open_ones)} sets, then run this again")
            break
        chosen = found.chosen
        if not found.open:
            break
    if not notes:
        notes.append(
            "the search ends: no further optimization is faster; one that pays off only beside another is missed"
        )
    notes.insert(0, f"best so far: {_words(chosen, names)}, performance {measured[tuple(chosen)]:g}")
    return Answer(rows, COLUMNS, notes)


def _measured(versions: list[dict[str, Any]], names: list[str]) -> dict[tuple[bool, ...], float]:
    if not names:
        raise UsageError(
            "versions: name the optimizations as further columns, 1 where a version has it and 0 where not"
        )
    found: dict[tuple[bool, ...], float] = {}
    for row in versions:
        if wrong := [name for name in names if row[name] not in (0, 1)]:
            raise UsageError(f"versions: {wrong[0]} is {row[wrong[0]]}; allowed: 1 and 0")
        found[tuple(row[name] == 1 for name in names)] = row["performance"]
    if (False,) * len(names) not in found:
        raise UsageError("versions: the version without any optimization is missing; give it with 0 in every column")
    return found


def _words(chosen: Any, names: list[str]) -> str:
    return " + ".join(name for name, one in zip(names, chosen, strict=True) if one) or NONE


CALCULATORS = (
    Calculator(
        name="next-optimization",
        title="Greedy search for the best set of optimizations",
        question="Which combination of optimizations should be measured next, and when does the search end?",
        source="Kim2012, section 3.5.2",
        inputs=(
            Input(
                "versions",
                "Measured versions of a kernel",
                "table",
                columns=(Input("performance", "Performance of the version, more is better", minimum=0),),
                more_columns="1 where the version has this optimization, 0 where not",
            ),
        ),
        answer=next_optimization,
        examples=(
            Example("Shared memory pays off first; with it, prefetching and unrolling are to be measured.",
                    {"versions": "prefetch,shared,unroll,performance\n0,0,0,70\n1,0,0,68\n0,1,0,190\n0,0,1,75\n"}),
        ),
        functions=("performance.work_depth.next_candidates", "performance.work_depth.accept"),
        accuracy="a search over measured versions: no prediction to be wrong",
    ),
)  # fmt: skip
