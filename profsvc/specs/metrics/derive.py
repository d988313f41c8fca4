"""From the metrics of a tool to our counters, launch by launch."""

import graphlib
from functools import cache
from typing import TYPE_CHECKING

from profsvc.specs.metrics.expression import Expression, floats
from profsvc.specs.metrics.mapping import metrics, references
from profsvc.specs.metrics.vocabulary import counters

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from profsvc.specs.metrics.expression import Floats, Values

    Derived = tuple[dict[str, Floats], dict[str, npt.NDArray[np.object_]]]


@cache
def _in_order(tool: str, compute_capability: str | None) -> tuple[tuple[str, Expression], ...]:
    """Return the numeric counters and their expressions; each after those it refers to."""
    numeric = {c: e for c, e in metrics(tool, compute_capability).items() if counters()[c].kind == "number"}
    graph = {counter: references(expression) for counter, expression in numeric.items()}
    return tuple((c, numeric[c]) for c in graphlib.TopologicalSorter(graph).static_order() if c in numeric)


def derive_counters(tool: str, compute_capability: str | None, values: "Values") -> "Derived":
    """Compute every counter that ``values`` allow, and the expression that gave it, for each launch.

    ``values`` maps the tool's names to one value a launch, in SI units as the tidy table ``metrics`` holds them
    (seconds, bytes, Hz, shares between 0 and 1), NaN or null where missing. A name ``@counter`` supplies a
    counter from elsewhere, such as the device: it is used where the tool itself does not give it.
    A counter that is known for no launch is left out; where it is not known its value is NaN and its text None.

    >>> found, used = derive_counters("ncu", "9.0", {"gpu__time_duration.sum": [2e-6, 3e-6]})
    >>> found["duration_ns"].round(6).tolist(), used["duration_s"].tolist()
    ([2000.0, 3000.0], ['@duration_ns * 1e-9', '@duration_ns * 1e-9'])
    """
    import numpy as np

    found: dict[str, Floats] = {}
    used: dict[str, npt.NDArray[np.object_]] = {}
    known: dict[str, npt.ArrayLike] = dict(values)
    for counter, expression in _in_order(tool, compute_capability):
        result = expression.evaluate(known)
        if result is None or np.isnan(result.value).all():
            continue
        found[counter] = result.value
        texts = np.array([*(a.text for a in expression.alternatives), None], dtype=object)
        used[counter] = texts[np.where(np.isnan(result.value), -1, result.alternative)]
        supplied = floats(values.get(f"@{counter}", np.nan))
        known[f"@{counter}"] = np.where(np.isnan(result.value), supplied, result.value)
    return found, used
