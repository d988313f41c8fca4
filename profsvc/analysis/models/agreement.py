"""Spread between models that answer the same question: time, bound and speedup."""

from collections.abc import Mapping, Sequence

import numpy as np

from profsvc.analysis.models.answer import BOUND_MODELS, TIME_MODELS, Answer, Array
from profsvc.analysis.models.inputs import Values
from profsvc.analysis.models.timing import CASES
from profsvc.analysis.potential.launch_potential import MIN_TIME_SHARE
from profsvc.formulas.numerics.flags import CONSISTENT

BOUND_NAMES = {0: "compute", 1: "memory", 2: "disputed"}
Found = Mapping[str, Sequence[Answer]]


def value_of(found: Found, model: str, quantity: str) -> Array:
    """Return the value of a quantity in the consistent form; NaN where the model does not answer."""
    every = (one.value for one in found.get(model, ()) if one.quantity == quantity and one.form == CONSISTENT)
    return np.asarray(next(every, np.nan), dtype=np.float64)


def _bound_votes(found: Found, bound: Array | None) -> list[Array]:
    """Return the bound by each model: 1 memory, 0 compute, NaN neither."""
    case = value_of(found, "mwp_cwp", "case")
    names = {name: number for number, name in CASES.items()}
    by_case = np.where(case == names["memory"], 1.0, np.where(case == names["compute"], 0.0, np.nan))
    others = [value_of(found, model, "bound") for model in BOUND_MODELS]
    return list(np.broadcast_arrays(by_case, *others, np.nan if bound is None else bound))


def _speedups(found: Found, v: Values, potential: Array | None) -> list[Array]:
    time_ns, roof = v["duration_s"] * 1e9, value_of(found, "roofline", "time_ns")
    by_roof = np.where(roof > MIN_TIME_SHARE * time_ns, time_ns / roof, np.nan)
    others = (value_of(found, "benefit", "speedup"), by_roof)
    return list(np.broadcast_arrays(np.nan if potential is None else potential, *others))


def _answer_range(every: list[Array]) -> tuple[Array, Array]:
    """Lowest and highest of the answers of several models; NaN where there are fewer than two."""
    several = np.add.reduce([(~np.isnan(one)).astype(np.int8) for one in every]) > 1
    low, high = (np.where(several, x, np.nan) for x in (np.fmin.reduce(every), np.fmax.reduce(every)))
    return low, high


def _mean(every: list[Array]) -> Array:
    """Mean of the known ones; NaN if all are unknown."""
    known = np.add.reduce([(~np.isnan(one)).astype(np.float64) for one in every])
    return np.asarray(np.add.reduce([np.nan_to_num(one) for one in every]) / known)


@np.errstate(all="ignore")
def agreement(found: Found, v: Values, bound: Array | None = None, potential: Array | None = None) -> list[Answer]:
    """Return the mean of the predicted times over the measured one, what bounds the launch, and how far models differ.

    ``bound`` (1 memory, 0 compute) and ``potential`` are what the joint bound says.
    """
    times = list(np.broadcast_arrays(*(value_of(found, model, "time_ns") for model in TIME_MODELS)))
    mean = np.exp(_mean([np.log(time) for time in times]))
    share = _mean(_bound_votes(found, bound))
    verdict = np.where(np.isnan(share), np.nan, np.where(share == 1, 1.0, np.where(share == 0, 0.0, 2.0)))
    (first, last), (low, high) = _answer_range(times), _answer_range(_speedups(found, v, potential))
    return [
        Answer("time_ratio", mean / (v["duration_s"] * 1e9)),
        Answer("time_spread", last / first),
        Answer("bound", verdict, names=BOUND_NAMES),
        Answer("memory_votes", share),
        Answer("speedup_low", low),
        Answer("speedup_high", high),
        Answer("speedup_spread", high / low),
    ]
