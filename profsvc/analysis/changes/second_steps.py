"""Steps that follow an open finding before its level has a history of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from profsvc.formulas.change.nightly_test import MIN_TESTS, NewestValue, NightlyVerdict, effect, false_discovery
from profsvc.formulas.change.steps.early_steps import early_step
from profsvc.formulas.change.steps.newest_step import ALPHA

MIN_NOISE_SHARE = 0.1  # of its change, of a finding of a series that never varied
Floats = npt.NDArray[np.float64]


def with_second_steps(
    raw: Floats,
    value: Floats,
    spans: Mapping[str, range],
    open_findings: Sequence[Mapping[str, Any]],
    verdict: NightlyVerdict,
    before: NewestValue,
    least: tuple[Floats, Floats],
) -> tuple[NightlyVerdict, NewestValue]:
    """Return the verdict with such steps, and the noise before them, which is that of the finding.

    ``raw``: the values; ``value``: those of the baselines; ``spans``: where the points of each series stand, in order;
    ``open_findings``: those that are not fixed, oldest first; ``least``: the reporting thresholds.
    """
    p, at, levels = verdict.p.copy(), verdict.at.copy(), [verdict.before.copy(), verdict.after.copy()]
    points, noise, rho = verdict.points_after.copy(), before.sd.copy(), before.autocorrelation.copy()
    number = {name: place for place, name in enumerate(spans)}
    stepped = np.zeros(p.size, dtype=np.bool_)
    for name, finding in {str(one["series"]): one for one in open_findings if str(one["series"]) in spans}.items():
        one, span = number[name], spans[name]
        own = np.arange(span.start, span.stop)
        own = own[~np.isnan(value[own])]
        if not own.size:
            continue
        sd = _noise(finding, raw[span.start : own[0]])
        step = early_step(value[own], sd, int(finding["points_before"]))
        if step is None or step.p > ALPHA or p[one] <= step.p:
            continue
        stepped[one] = True
        p[one], at[one], points[one], noise[one], rho[one] = step.p, own[step.at], own.size - step.at, sd, 0.0
        levels[0][one], levels[1][one] = step.before, step.after
    if not stepped.any():
        return verdict, before
    family = false_discovery(p, least=MIN_TESTS)
    found = (p <= ALPHA) & family.found & effect(levels[0], levels[1], *least).material
    found = np.where(stepped, found, verdict.found & family.found)
    changed = verdict._replace(
        found=found, p=p, adjusted=family.adjusted, at=at, before=levels[0], after=levels[1], points_after=points,
        rerun_wanted=verdict.rerun_wanted & ~found,
    )  # fmt: skip
    return changed, before._replace(sd=noise, autocorrelation=rho)


def _noise(finding: Mapping[str, Any], older: Floats) -> float:
    """Return the noise before a finding: with its tails, for a level of few values may be one of them."""
    known = older[~np.isnan(older)][-int(finding["points_before"]) :]
    spread = float(np.std(known, ddof=1)) if known.size > 1 else 0.0
    noise = max(spread, float(finding["noise"] or 0.0))
    return noise or MIN_NOISE_SHARE * abs(float(finding["after"]) - float(finding["before"]))
