"""All steps of long histories, looked at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.change.levels.distant_levels import distant_levels
from profsvc.formulas.change.levels.series_length import MIN_HISTORY, MIN_SEGMENT
from profsvc.formulas.change.steps.newest_step import ALPHA
from profsvc.formulas.change.steps.surest_step import surest_step
from profsvc.formulas.change.trends import shapes, stepped_trend
from profsvc.formulas.numerics.arrays import Array
from profsvc.formulas.numerics.series import (
    Index,
    Series,
    codes_of,
    gather,
    in_units_of_sd,
    medians,
    read_series,
    subseries,
    without_spikes,
)

# newest values left out, to see steps that were later reversed
LOOKBACK_LENGTHS = (0, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610)


class Steps(NamedTuple):
    """The steps that were found, one entry per step, by group and then in order."""

    group: NDArray[np.int64]
    at: NDArray[np.int64]
    p: Array
    before: Array
    after: Array


def all_steps(
    value: ArrayLike,
    group: ArrayLike | None = None,
    standard_error: ArrayLike | None = None,
    alpha: float = ALPHA,
) -> Steps:
    r"""All steps of long histories: the surest one, then the same in the parts before and after it.

    .. math:: E \min_e p_e \le \alpha

    A part is tested by `newest_step` as it is, and as it was without its newest 5, 8, 13, ... values: so a step that
    was taken back later is seen too, unless no view ends near it. With E such views each p is
    multiplied by E, the bound of Bonferroni. A level that was there before makes a step too: this tells what happened,
    and not whether it is new. Nights as they come need only `newest_step`, with the series since the last step.

    Where that test sees dependent noise, two levels still make a step if they are farther apart than noise with an
    autocorrelation of 0.9 goes, by `distant_levels`. Each of the two tests may err with alpha. In noise that hardly
    depends on the night before the second is far from it, and in dependent noise the first.

    Values that follow a trend rather than a step have none, unless one is sure beside the trend, wherever it may be.

    Source: own model; binary segmentation with the tests of `newest_step` and `distant_levels`.

    Args:
        value: Values of the series in order, flat [any]; NaN where one is missing.
        group: Id of the series of each value; None: one series.
        standard_error: Standard error of each value, or one for all [as the value]; None, NaN or 0: unknown.
        alpha: Probability of error of each of the two tests, of each part [1].

    Returns: Steps; ``before`` and ``after`` are the medians of the levels on both sides.

    Range: at least 5 values before each step and 3 after.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not fit.

    >>> up_and_down = [1.0, 1.1, 0.9, 1.0, 1.1, 0.9] * 2 + [3.0, 3.1, 2.9, 3.0, 3.1, 2.9] + [1.0, 1.1, 0.9, 1.0, 1.1]
    >>> found = all_steps(up_and_down)
    >>> found.at.tolist(), found.before.tolist(), found.after.tolist()
    ([12, 18], [1.0, 3.0], [3.0, 1.0])
    """
    x, error, groups = read_series(value, group, standard_error)
    series = without_spikes(gather(x, error, groups, ~np.isnan(x)))
    splits, sure = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    start, stop = series.start, series.stop
    while start.size:
        split, p = _step_at_any_end(series, start, stop, alpha)
        found = p <= alpha
        splits.append(split[found])
        sure.append(p[found])
        start, stop = np.append(start[found], split[found]), np.append(split[found], stop[found])
    at, p = np.concatenate(splits), np.concatenate(sure)
    order = np.argsort(at)
    at, p = at[order], p[order]
    level = np.zeros(series.x.size + 1, dtype=np.intp)
    level[at] = 1
    level[series.start[1:]] = 1
    codes = np.cumsum(level)[:-1]
    levels = medians(series.x, codes, int(level.sum()) + 1)
    before, after = levels[codes[at] - 1], levels[codes[at]]
    columns = (groups.ids[codes_of(series)[at]], series.place[at], p, before, after)
    return Steps(*(column[before != after] for column in columns))


def _step_at_any_end(series: Series, start: Index, stop: Index, alpha: float) -> tuple[Index, Array]:
    """Split and p of the surest step in each part, as seen from its end or from earlier nights."""
    cuts = np.array(LOOKBACK_LENGTHS)
    part, view = np.nonzero((stop - start)[:, np.newaxis] - cuts >= MIN_SEGMENT + MIN_HISTORY)
    n = stop[part] - cuts[view] - start[part]
    seen = subseries(series, start[part], start[part] + n)
    best = surest_step(in_units_of_sd(seen), doubt=False)
    looks = np.bincount(part, minlength=start.size)
    at, p = best.split - seen.start + start[part], np.minimum(best.p * looks[part], 1.0)
    levels = distant_levels(seen)
    whole = (view == 0) & (levels.p < np.where(np.isnan(p), 1.0, p))
    at, p = np.where(whole, levels.split - seen.start + start[part], at), np.where(whole, levels.p, p)
    sure = np.flatnonzero(p <= alpha)
    p[sure] = _beside_a_trend(series, start[part][sure], (start[part] + n)[sure], at[sure], p[sure])
    order = np.lexsort((p, part))
    first = order[np.cumsum(looks)[looks > 0] - looks[looks > 0]]
    split, out = start.copy(), np.full(start.size, np.nan)
    split[looks > 0], out[looks > 0] = at[first], p[first]
    return split, out


def _beside_a_trend(series: Series, start: Index, stop: Index, split: Index, p: Array) -> Array:
    """Return p of each step, if the values follow a trend rather than a step that of the step beside the trend."""
    shape = shapes(subseries(series, start, stop), np.arange(start.size))
    out = p.copy()
    for one in np.flatnonzero(shape.trend > shape.step):
        x = series.x[start[one] : stop[one]]
        out[one] = max(p[one], min(1.0, x.size * stepped_trend(x, int(split[one] - start[one])).p))
    return out
