"""Outcome of kernels in a later run: a regression, no change, or the share of the predicted saving."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from profsvc import specs
from profsvc.formulas.change.nightly_test import effect
from profsvc.formulas.numerics.prediction_accuracy import saving_achieved

REGRESSION, NO_CHANGE, FASTER = "regression", "no change", "faster"
Numbers = Sequence[float | None]


class Outcome(NamedTuple):
    """Outcome of a kernel; ``share`` is its share of the predicted saving, None without a prediction."""

    word: str | None
    share: float | None


def kernel_outcomes(before_ns: Numbers, after_ns: Numbers, predicted: Numbers) -> list[Outcome]:
    """Return the outcome of kernels from their mean times in two runs and their predicted speedup.

    A difference below the reporting threshold of durations has the share 0; a regression has a negative share.

    >>> kernel_outcomes([100e3] * 4, [95e3, 100.2e3, 105e3, None], [1.25] * 4)  # doctest: +NORMALIZE_WHITESPACE
    [Outcome(word='faster', share=0.25), Outcome(word='no change', share=0.0),
     Outcome(word='regression', share=-0.25), Outcome(word=None, share=None)]
    """
    least = specs.smallest_change("duration")
    before, after, speedup = (np.array(one, dtype=np.float64) for one in (before_ns, after_ns, predicted))
    with np.errstate(all="ignore"):
        moved = effect(before, after, least.relative, least.absolute).material
        share = np.where(moved, saving_achieved(speedup, before / after), 0.0)
        unpredicted = np.isnan(saving_achieved(speedup, 1.0))
        words = np.where(moved, np.where(after > before, REGRESSION, FASTER), NO_CHANGE)
    unknown = np.isnan(before) | np.isnan(after)
    return [
        Outcome(None if none else str(word), None if none or free else round(float(one), 12))
        for word, one, none, free in zip(words, share, unknown, unpredicted, strict=True)
    ]
