"""How often series without a change raise a finding, and how soon a change is found.

Run it with ``python -m tests.benchmarks.change``. All series are simulated, from one seed. Other tools stand beside
in `tests.benchmarks.detection`.

*One look* examines a series once, when it is whole. *Every night* looks again after each new value, from the eighth on,
and counts a series as false if any of the looks raises a finding. No rule can then hold 1 % in 100 nights and find 2 sd
within 5 in 90 %: the cumulative sum with all parameters known, which is optimal (Lorden 1971, Moustakides 1986), is
printed beside. Two things help: many series share one false share, and re-runs bring values the same night.

*A finding hangs on a spike* if the other values show nothing at 5 %; `tests.formulas.change.left_out` computes that
again. There is none, by construction. Beside it stands how often a spike was the last of several suspicious values:
then the same series raises no finding while that value is missing. Near the step that is to be found no rule can tell
these apart: the least that any rule can have which finds 2 sd within five values in 90 % is printed beside, by the
lemma of Neyman and Pearson, with the level and the sd known and five values to look at, once and for a step up alone.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from profsvc.formulas.change.histories import all_steps
from profsvc.formulas.change.nightly_test import NightlyVerdict, newest_value, nightly_verdict
from profsvc.formulas.change.steps.newest_step import ALPHA, newest_step
from profsvc.formulas.change.steps.surest_step import MAX_LEAVE_ONE_OUT_RATIO
from tests.command_line import parser_of
from tests.formulas.change.left_out import counted, p_of_others
from tests.inputs.noise import autoregressive, two_states, white

SEED = 20261121
SERIES = 20_000  # so that 90 % is known to 0.2 %
SPIKES = (2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 1e6)
Rng = np.random.Generator


DEPENDENT = {
    "AR(1) 0.3": lambda rng, series, nights: autoregressive(rng, series, nights, 0.3),
    "AR(1) 0.6": lambda rng, series, nights: autoregressive(rng, series, nights, 0.6),
    "AR(1) 0.9": lambda rng, series, nights: autoregressive(rng, series, nights, 0.9),
    "two states, not sticky": lambda rng, series, nights: two_states(rng, series, nights, 0.3, 0.7),
    "two states, sticky": lambda rng, series, nights: two_states(rng, series, nights, 0.1, 0.1),
    "Student's t, 3 degrees of freedom": lambda rng, series, nights: rng.standard_t(3, (series, nights)),
}


def stepped(x: np.ndarray, nights: int, height: float) -> np.ndarray:
    """Raise the newest nights of every series."""
    return np.concatenate((x[:, :-nights], x[:, -nights:] + height), axis=1)


def spiked(rng: Rng, x: np.ndarray, height: float, newest: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the series with one spike each, anywhere or in its newest values, and the same with it missing."""
    nights = x.shape[1]
    at = (np.arange(len(x)), rng.integers(nights - (newest or nights), nights, len(x)))
    with_spike, without = x.copy(), x.copy()
    with_spike[at] += height
    without[at] = np.nan
    return with_spike, without


def flat(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and groups as the formulas take them."""
    return x.ravel(), np.repeat(np.arange(len(x)), x.shape[1])


def found(x: np.ndarray) -> np.ndarray:
    """Return which series raise a finding at one look, each as if it were alone."""
    return np.asarray(newest_step(*flat(x)).p <= ALPHA)


def found_within(x: np.ndarray, nights: int) -> float:
    """Return the share of series found in one of the looks at the newest nights."""
    ever = np.zeros(len(x), dtype=bool)
    for short in range(nights):
        ever |= found(x[:, : x.shape[1] - short])
    return float(ever.mean())


def least_raised(rng: Rng, spike: float, series: int = 10 * SERIES) -> float:
    """Return the least share of series with one spike among the newest values that any rule can raise a finding for.

    No rule that finds a step of 2 sd of all five values in 90 % has fewer than the ratio of both likelihoods.
    """
    power, height, newest = 0.9, 2.0, 5

    def ratio(x: np.ndarray) -> np.ndarray:
        one_spike = np.logaddexp.reduce(spike * x - spike**2 / 2, axis=1) - np.log(newest)
        return height * x.sum(axis=1) - newest * height**2 / 2 - one_spike

    x = white(rng, series, newest)
    bound = np.quantile(ratio(x + height), 1 - power)
    x[:, 0] += spike
    return float(np.mean(ratio(x) > bound))


class Spiked(NamedTuple):
    """Series with a spike that raise a finding which hangs on it, or would if that did not bar it; and the others.

    ``last`` counts the findings that are there with the spike, but not while that value is missing; ``raised`` all.
    """

    hang: int
    barred: int
    last: int
    raised: int


def brought_by_spike(rng: Rng, x: np.ndarray, height: float, newest: int | None = None) -> Spiked:
    """Count what a spike anywhere in each series, or in its newest values, brings about."""
    with_spike, without = spiked(rng, x, height, newest)
    step = newest_step(*flat(with_spike))
    raised, suspected = np.asarray(step.p <= ALPHA), np.asarray(step.p_suspected <= ALPHA)
    hang = np.zeros(len(x), dtype=bool)
    for one in np.flatnonzero(suspected):
        hang[one] = hangs_on(with_spike[one], int(np.flatnonzero(np.isnan(without[one]))[0]))
    counts = (hang & raised, hang & ~raised, raised & ~found(without), raised)
    return Spiked(*(int(count.sum()) for count in counts))


def hangs_on(x: np.ndarray, one: int) -> bool:
    """Return whether the values of a series but one show no step at 5 %; values that are spikes do not count at all."""
    places = counted(x)
    at = np.flatnonzero(places == one)
    return bool(at.size) and p_of_others(x[places], int(at[0])) > MAX_LEAVE_ONE_OUT_RATIO * ALPHA * (1 + 1e-9)


def one_night(
    rng: Rng, nights: int, height: float, series: int = 1000, changed: int = 10, noise: Any = white
) -> tuple[int, int]:
    """Return findings that are real, and false ones, of one night on which some series changed 5 nights ago.

    ``noise`` is that of the others.
    """
    x = np.concatenate((white(rng, changed, nights), noise(rng, series - changed, nights)))
    x[:changed, -5:] += height
    hits = nightly_verdict(*flat(x)).found
    return int(hits[:changed].sum()), int(hits[changed:].sum())


def season(
    rng: Rng, series: int, start: int, nights: int, changes: dict[int, int], height: float, **how: Any
) -> dict[str, Any]:
    """Look every night, move the baseline of what is found, and count findings; ``changes``: series, then its night.

    ``how``: ``alpha``, ``share``; ``alone`` judges each series by itself; ``reruns`` values are added at once where a
    re-run is wanted, and the night is judged again.
    """
    reruns, alone = how.pop("reruns", 0), how.pop("alone", False)
    level = np.zeros((series, nights))
    for one, night in changes.items():
        level[one, night:] = height
    x = np.full((series, nights * (1 + reruns)), np.nan)
    since = np.zeros(series, dtype=int)
    asked, false, delay = 0, [], {}
    for night in range(nights):
        x[:, night * (1 + reruns)] = level[:, night] + rng.standard_normal(series)
        if night < start:
            continue
        seen = x[:, : night * (1 + reruns) + 1]
        verdict = _judge(seen, since, alone, how)
        asked += int(verdict.rerun_wanted.sum())
        if reruns and verdict.rerun_wanted.any():
            again = np.flatnonzero(verdict.rerun_wanted)
            seen = x[:, : (night + 1) * (1 + reruns)]
            seen[again, night * (1 + reruns) + 1 :] = level[again, night, np.newaxis] + rng.standard_normal(
                (again.size, reruns)
            )
            verdict = _judge(seen, since, alone, how)
        for one in np.flatnonzero(verdict.found):
            real = one in changes and night >= changes[one] and one not in delay
            if real:
                delay[one] = night - changes[one] + 1
            else:
                false.append(int(one))
            since[one] = verdict.at[one] - one * seen.shape[1]
    return {"delay": delay, "false": false, "reruns a night": asked / (nights - start)}


def _judge(seen: np.ndarray, since: np.ndarray, alone: bool, how: dict[str, Any]) -> NightlyVerdict:
    begun = np.arange(seen.shape[1]) >= since[:, np.newaxis]
    verdict = nightly_verdict(*flat(np.where(begun, seen, np.nan)), **how)
    return verdict._replace(found=verdict.p <= how.get("alpha", ALPHA)) if alone else verdict


def optimal(rng: Rng, bound: float, series: int = 20_000) -> tuple[float, float]:
    """Return the false share in 100 nights, and the share of 2 sd found in 5, of the cumulative sum for 2 sd."""
    out = []
    for nights, after in ((100, 0), (50, 5)):
        x = rng.standard_normal((series, nights + after))
        x[:, nights:] += 2.0
        total, over = np.zeros((2, series)), np.full(series, nights + after)
        for night in range(nights + after):
            total = np.maximum(0.0, total + np.stack((x[:, night] - 1.0, -x[:, night] - 1.0)))
            over = np.where(total.max(axis=0) > bound, np.minimum(over, night), over)
        out.append(np.mean(over < nights) if not after else np.mean((over < nights + after)[over >= nights]))
    return float(out[0]), float(out[1])


def _line(what: str, ours: str, target: str = "", theirs: str = "") -> None:
    print(f"{what:66}{ours:>12}{target:>12}{theirs:>24}")


def _percent(x: float) -> str:
    return f"{100 * x:.2f} %"


def one_look(rng: Rng) -> None:
    """Print the table of series that are examined once."""
    _line("one look at 100 values", "profsvc", "target")
    noises = {"white noise": white(rng, SERIES, 100), "AR(1) 0.6": autoregressive(rng, SERIES, 100, 0.6)}
    for (name, x), target in zip(noises.items(), ("<= 1 %", "<= 5 %"), strict=True):
        _line(f"{name}: series with a finding", _percent(found(x).mean()), target)
        steps = all_steps(*flat(x[:1000]), None)
        _line(f"{name}: the same, all steps of the history", _percent(np.unique(steps.group).size / 1000), target)
    for name, x in {
        "Student's t, 3 degrees of freedom": rng.standard_t(3, (4000, 100)),
        "exponential": rng.exponential(1.0, (4000, 100)),
        "AR(1) 0.6, 20 values": autoregressive(rng, 4000, 20, 0.6),
        "rounded to 2 sd": np.round(white(rng, 4000, 100) / 2) * 2,
        "a second value in 5 % of the nights": (rng.random((4000, 100)) < 0.05) * 1.0,
    }.items():
        _line(f"{name}: series with a finding", _percent(found(x).mean()))
    for grain in (1.0, 2.0):
        x = np.round(stepped(white(rng, 2000, 100), 5, 2.0) / grain) * grain
        _line(f"2 sd step, rounded to {grain:g} sd: found within 5", _percent(found_within(x, 5)))
    for history in (20, 50, 95):
        share = found_within(stepped(white(rng, SERIES, history + 5), 5, 2.0), 5)
        _line(f"2 sd step after {history} values: found within 5", _percent(share), ">= 90 %" if history == 95 else "")
    for newest, where in ((None, ""), (5, " in the newest 5")):
        for height in SPIKES:
            got = brought_by_spike(rng, white(rng, SERIES, 100), height, newest)
            _line(f"a spike of {height:g} sd{where}: findings that hang on it", f"{got.hang} of {SERIES}", "0")
            _line("    suspected only, for they would", _percent(got.barred / SERIES))
            _line("    findings of which it is the last suspicious value", _percent(got.last / SERIES))
            least = f">= {_percent(least_raised(rng, height))}" if newest == 5 and height < SPIKES[-1] else ""
            _line("    series with a finding, which white noise has too", _percent(got.raised / SERIES), least)


def every_night(rng: Rng) -> None:
    """Print the table of series that are watched."""
    print()
    _line("a look every night", "profsvc", "target")
    for height in (2.0, 3.0, 4.0):
        real, false = np.sum([one_night(rng, 100, height) for _ in range(30)], axis=0)
        _line(f"1000 series, 10 changed by {height:g} sd 5 nights ago: false share", _percent(false / (real + false)),
              "< 10 %")  # fmt: skip
        _line("    of the changes found", _percent(real / 300))
    changes = dict(enumerate(rng.integers(50, 90, 10).tolist()))
    for reruns in (0, 2):
        got = season(rng, 1000, 40, 100, changes, 3.0, reruns=reruns)
        n = len(got["delay"]) + len(got["false"])
        _line(f"1000 series for 60 nights, 10 change by 3 sd, {reruns} re-runs: false share",
              _percent(len(got["false"]) / n), "< 10 %")  # fmt: skip
        _line("    of the changes found", f"{len(got['delay'])} of 10")
        _line("    median nights until found", f"{np.median(list(got['delay'].values())):.1f}")
        _line("    series asked for a re-run a night", f"{got['reruns a night']:.1f}")
    got = season(rng, 1000, 8, 100, {}, 0.0)
    _line("1000 series of white noise, 100 nights: series with a finding", _percent(len(set(got["false"])) / 1000),
          "<= 1 %")  # fmt: skip
    print()
    _line("one series alone, every night", "false in 100", "2 sd in 5")
    for bound in (2.5, 4.2):
        false, soon = optimal(rng, bound)
        _line(f"optimum, all parameters known (cumulative sum, bound {bound})", _percent(false), _percent(soon))
    for alpha, reruns in ((ALPHA, 0), (0.0003, 0), (0.0003, 2), (0.0003, 4)):
        got = season(rng, 300, 8, 100, {}, 0.0, alone=True, alpha=alpha, reruns=reruns)
        steps = season(rng, 1000, 50, 55, dict.fromkeys(range(1000), 50), 2.0, alone=True, alpha=alpha, reruns=reruns)
        _line(f"profsvc, p <= {alpha}, {reruns} re-runs where wanted", _percent(len(set(got["false"])) / 300),
              _percent(len(steps["delay"]) / 1000))  # fmt: skip


def dependent(rng: Rng) -> None:
    """Print how many findings are false where neighbours depend on each other, or the noise has wild values."""
    print()
    _line("a night of 1000 series, 10 white ones changed by 8 sd 5 nights ago", "false share", "", "real, false of 10")
    for name, noise in DEPENDENT.items():
        for nights in (12, 20, 40, 100):
            real, false = np.sum([one_night(rng, nights, 8.0, noise=noise) for _ in range(10)], axis=0)
            _line(f"{name}, {nights} nights", _percent(false / max(real + false, 1)), "", f"{real}, {false}")


def speed(rng: Rng) -> None:
    """Print how long a night takes."""
    print()
    x = flat(white(rng, 1000, 365))
    for function in (newest_step, newest_value, nightly_verdict, all_steps):
        started = time.perf_counter()
        function(*x)
        _line(f"{function.__name__}, 1000 series of 365 values", f"{time.perf_counter() - started:.2f} s")


def main() -> None:
    """Print all tables."""
    rng = np.random.default_rng(SEED)
    for table in (one_look, every_night, dependent, speed):
        table(rng)


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    main()
