"""Steps of a level that may wander a little every night, as those of siblings do."""

import numpy as np
import numpy.typing as npt

from profsvc.analysis.changes.explanations.drifts import without_spikes_of
from profsvc.formulas.change.levels.wandering import wandering
from profsvc.formulas.numerics.series import subseries

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def wandering_probabilities(
    value: Floats,
    group: Ints,
    family: npt.NDArray[np.intp],
    asked: npt.NDArray[np.intp],
    at: Ints,
    p: Floats,
    night: npt.NDArray[np.intp],
) -> Floats:
    """Probability of each step, by how probably its level wanders as those of its siblings do."""
    every, out = without_spikes_of(value, group)[0], np.zeros(asked.size)
    for number in np.unique(family[asked]).tolist():
        mine, members = np.flatnonzero(family[asked] == number), np.flatnonzero(family == number)
        own = subseries(every, every.start[members], every.stop[members])
        one = np.searchsorted(members, asked[mine])
        split = [a + np.searchsorted(own.place[a:b], step)
                 for a, b, step in zip(own.start[one], own.stop[one], at[asked[mine]], strict=True)]  # fmt: skip
        wander = wandering(own, one, np.array(split, dtype=np.intp), night)
        out[mine] = wander.share * wander.p + (1.0 - wander.share) * p[asked[mine]]
    return out
