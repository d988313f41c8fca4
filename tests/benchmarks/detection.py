"""False findings and steps found, night after night, for every kind of noise, beside other tools on the same series.

Run it with ``python -m tests.benchmarks.detection [KIND ...]``; ``--series 30`` for less, ``--runs`` for several runs a
night, ``--alone`` for series without siblings. ``--peers PYTHON`` names a Python that has ``apache-otava``, ``asv`` and
``ruptures``, in an environment of its own: they want older libraries. What is missing is said.
`tests.benchmarks.peers` says how the tools are asked.

Series are simulated with an sd of 2 % of their level, from a seed that no constant was chosen with; ``--seed`` gives
another. `find_changes` sees them every night with its own findings of before, whose states move on. Nights are one day
apart. The kinds of `tests.inputs.noise.UNSEEN` were written after the constants.

*False* counts findings in 1000 nights of a series without a change. *Share* is that of false findings among all in
nights on which 1 % of the series, of white noise, changed by 8 sd five nights ago; *first* is the same where the report
is the first one of the whole history. Of the other tools, findings in the newest seven nights count, at one look. What
they say of the history at their first look never counts. A step of 2 or 3 sd counts as found if a finding is there
within five nights; for dependent noise the sd is that of a value about the level. Where nights are missing, *5 values*
counts those found by the night of the fifth value since the step. Beside each share stand the ends of its interval of
95 %, after Clopper and Pearson. *Bound* is the share that no rule exceeds with two false findings in 1000 nights of
white noise, *limit* that of the best known rule; both know the noise.
"""

import argparse
import io
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc.analysis.changes.nightly import NightlyFindings, find_changes
from profsvc.formulas.numerics.distributions import normal_tail
from tests.command_line import parser_of
from tests.inputs.noise import NOISES, UNSEEN, Floats, Rng, white

SEED = 20261127
LEVEL_NS, SD = 1e6, 0.02
FIRST = datetime(2026, 1, 5, 2, tzinfo=UTC)
STEPS = ("white", "AR(1) 0.3", "t3", "lognormal", "weekly", "quantised", "missing")
HISTORIES = (4, 10, 30, 100, 400)
HEIGHTS = (2.0, 3.0)  # of steps, in sd
NIGHTS = 5  # within which a step is to be found
WATCHED = 20  # nights of quiet series, of which a limit has its rate of findings


class Told(NamedTuple):
    """What the evaluation said over some nights."""

    false: int  # findings
    nights: int  # of series
    found: int  # series with a finding
    reruns: int
    fixed: int
    rows: list[dict[str, Any]]


def several_runs(rng: Rng, x: Floats, runs: int, within: float) -> Floats:
    """Return nights of so many runs, which scatter by their own noise about the value of the night."""
    share = np.sqrt(1 + within**2 / runs)  # so that the mean of a night has an sd of 1
    return (x[:, :, np.newaxis] + within * rng.standard_normal((*x.shape, runs))) / share


def points_of(x: Floats, group: Floats) -> pd.DataFrame:
    """Return values of shape (series, nights, runs) as the evaluation takes them."""
    series, nights, runs = x.shape
    one = np.repeat(np.arange(series), nights * runs)
    night, run = np.tile(np.repeat(np.arange(nights), runs), series), np.tile(np.arange(runs), series * nights)
    stamps = np.array(
        [
            [f"{FIRST + timedelta(days=day, minutes=10 * number):%Y-%m-%dT%H:%M:%SZ}" for number in range(runs)]
            for day in range(nights)
        ],
        dtype=object,
    )
    value = LEVEL_NS * (1 + SD * x.ravel())
    names = np.array([f"s{number:06}" for number in group], dtype=object)
    constant = {
        "project": "suite", "device": "NVIDIA H200", "sensor": "ncu", "quantity": "duration", "kind": "duration",
        "unit": "ns", "branch": None, "build": None, "raw": np.nan, "low": np.nan, "high": np.nan, "error": np.nan,
        "reference_c": np.nan,
    }  # fmt: skip
    points = pd.DataFrame(
        {"series": names[one], "kernel": names[one], "subject": names[one], "value": value,
         "run_id": 1 + night * runs + run, "at": stamps[night, run], "night": night, "run": None} | constant
    ).dropna(subset=["value"], ignore_index=True)  # fmt: skip
    return points.assign(group=pd.factorize(points["series"])[0])  # a series without a value has no number


def walk(x: Floats, first: int, *, alone: bool = False) -> Told:
    """Look after each night from ``first`` on, with the findings so far; ``x`` of shape (series, nights, runs)."""
    told: list[dict[str, Any]] = []
    counts = dict.fromkeys(("reruns", "fixed"), 0)
    for night in range(first, x.shape[1]):
        seen = points_of(x[:, : night + 1], np.arange(len(x)))
        parts = [part.assign(group=0) for _, part in seen.groupby("series")] if alone else [seen]
        for part in parts:
            own = set(part["series"].unique())
            verdict = find_changes(part.reset_index(drop=True), [one for one in told if one["series"] in own])
            _remember(told, verdict, night)
            counts["reruns"] += len(verdict.reruns)
            counts["fixed"] += sum(move["state"] == "fixed" for move in verdict.moves)
    found = len({one["series"] for one in told})
    return Told(len(told), len(x) * (x.shape[1] - first), found, counts["reruns"], counts["fixed"], told)


def _remember(told: list[dict[str, Any]], verdict: NightlyFindings, night: int) -> None:
    moves = {move["finding_id"]: move for move in verdict.moves}
    for one in told:
        if one["finding_id"] in moves:
            one |= {"state": moves[one["finding_id"]]["state"], "said_at": moves[one["finding_id"]]["said_at"]}
    for row in verdict.found:
        told.append(row | {"finding_id": 1 + len(told), "state": "new", "said_at": None, "night": night})


def share_false(
    rng: Rng,
    noise: Callable[[Rng, int, int], Floats],
    history: int,
    series: int,
    looks: int = 5,
    *,
    first: bool = False,
) -> tuple[int, int]:
    """Return findings that are real, and false ones, of nights on which 1 % changed by 8 sd five nights ago.

    ``first``: the reports are the first ones of the whole history.
    """
    real = false = 0
    changed = max(1, series // 100)
    for _ in range(looks):
        x = noise(rng, series, history + 5)
        x[:changed] = white(rng, changed, history + 5)
        x[:changed, -5:] += 8.0
        points = points_of(x[:, :, np.newaxis], np.arange(series))
        verdict = find_changes(points, [], points["run_id"].unique().tolist() if first else None)
        hit = {int(row["series"][1:]) for row in verdict.found}
        real += sum(one < changed for one in hit)
        false += sum(one >= changed for one in hit)
    return real, false


def interval(events: int, of: int, error: float = 0.05) -> tuple[float, float]:
    """Return the interval of a probability that so many events of so many say, after Clopper and Pearson."""
    from scipy.special import betaincinv

    low = betaincinv(events, of - events + 1, error / 2) if events else 0.0
    high = betaincinv(events + 1, of - events, 1 - error / 2) if events < of else 1.0
    return float(low), float(high)


def _share(events: int, of: int, unit: float = 100.0, digits: int = 0) -> str:
    low, high = (f"{unit * end:.{digits}f}" for end in interval(events, of)) if of else ("", "")
    return f"{unit * events / max(of, 1):.{digits}f} ({low}-{high})"


def steps_found(rng: Rng, x: Floats, height: float, runs: int = 1, within: float = 0.0) -> float:
    """Return the share of series with a finding within five nights of a step."""
    y = several_runs(rng, x, runs, within)
    y[:, -5:] += height
    return walk(y, x.shape[1] - 5).found / len(x)


def found_within_values(x: Floats, history: int, height: float, values: int = 5) -> float:
    """Return the share of series with a finding by the night of their fifth value after a step."""
    y = x.copy()
    y[:, history:] += height
    told = walk(y[:, :, np.newaxis], history)
    since = np.cumsum(np.isfinite(x[:, history:]), axis=1)
    last = history + np.argmax(since == values, axis=1)
    said = since[:, -1] >= values
    soon = {one for row in told.rows if row["night"] <= last[one := int(row["series"][1:])] and said[one]}
    return len(soon) / int(said.sum())


def bound(history: int, height: float, rho: float = 0.0, missing: float = 0.0, rate: float = 0.002) -> float:
    """Return the share of steps that no rule exceeds within five nights with ``rate`` new findings in a quiet night.

    In five quiet nights such a rule makes a finding with a probability of five times the rate: it is a test of that
    size, and by the lemma of Neyman and Pearson none finds more steps, in a night and of a size that are known, than
    the difference of both levels by generalised least squares. Nights are missing with a probability, on average.
    """
    normal, rng = NormalDist(), np.random.default_rng(SEED)
    least, found = normal.inv_cdf(1 - NIGHTS * rate / 2), list[float]()
    for _ in range(1000 if missing else 1):
        night = np.flatnonzero(rng.random(history + NIGHTS) >= missing)
        levels = np.stack((np.ones(night.size), night >= history), axis=1)
        both = levels.any(axis=0).all() and not levels.all(axis=0).all()
        noise = rho ** np.abs(night[:, np.newaxis] - night)
        precision = np.linalg.inv(levels.T @ np.linalg.solve(noise, levels))[1, 1] if both else np.inf
        z = height / np.sqrt(precision)
        found.append(normal.cdf(z - least) + normal.cdf(-z - least))
    return float(np.mean(found))


def limit(rng: Rng, history: int, height: float, rate: float = 0.002, series: int = 20_000) -> float:
    """Return the share of steps found within five nights by looks every night that know the noise: the best known rule.

    It holds the newest five values, and with less weight four, against the mean of all before. ``rate`` are the new
    findings in a night of quiet series that are watched for `WATCHED` nights.
    """
    quiet, stepped = white(rng, series, history + WATCHED), white(rng, series, history + NIGHTS)
    stepped[:, history:] += height
    p = [_smallest(x, history) for x in (quiet, stepped)]
    return float(np.mean(p[1] <= np.quantile(p[0], rate * WATCHED)))


def _smallest(x: Floats, history: int) -> Floats:
    """Return the smallest weighted p of each series over the nights after the history."""
    total = np.cumsum(np.pad(x, ((0, 0), (1, 0))), axis=1)
    out = np.ones(len(x))
    for n in range(history + 1, x.shape[1] + 1):
        for m, weight in ((4, 0.15), (5, 1.0)):
            if m == n:  # nothing is before them
                continue
            rise = (total[:, n] - total[:, n - m]) / m - total[:, n - m] / (n - m)
            out = np.minimum(out, 2 * normal_tail(np.abs(rise) / np.sqrt(1 / m + 1 / (n - m))) / weight)
    return out


def of_peers(python: str, x: Floats, first: int) -> dict[str, list[list[int]]]:
    """Return series, night and place of the findings of other tools; what is missing is said once."""
    file = io.BytesIO()
    np.save(file, LEVEL_NS * (1 + SD * x))
    script = str(Path(__file__).with_name("peers.py"))
    done = subprocess.run([python, script, str(first)], input=file.getvalue(), capture_output=True, check=True)
    told = json.loads(done.stdout)
    for name in [name for name, found in told.items() if isinstance(found, str) and name not in MISSING]:
        MISSING.add(name)
        print(f"{name} is missing: {told[name]}", file=sys.stderr)
    return {name: found for name, found in told.items() if not isinstance(found, str)}


def later(found: list[list[int]], first: int) -> list[list[int]]:
    """Return what a tool said after its first look, which has the whole history to look at."""
    return [one for one in found if one[1] > first]


MISSING: set[str] = set()


def figures(kind: str, history: int, asked: argparse.Namespace) -> dict[str, list[str]]:
    """Return the figures of one kind and history: of the report, and by the night of the fifth value."""
    noise = (NOISES | UNSEEN)[kind]
    rng = np.random.default_rng([asked.seed, history, len(kind)])
    told = walk(noise(rng, asked.series, history + asked.nights)[:, :, np.newaxis], history)
    ours = [_share(told.false, told.nights, 1000.0, 1)]
    for first in (False, True):
        real, false = share_false(rng, noise, history, 5 * asked.series, asked.looks, first=first)
        ours.append(f"{false}/{real + false}: {_share(false, real + false)}")
    out = {"report": ours}
    if kind in STEPS:
        stepped = [noise(rng, asked.stepped, history + 5) for _ in HEIGHTS]
        found = [steps_found(rng, x, height) for x, height in zip(stepped, HEIGHTS, strict=True)]
        ours += [_share(round(one * asked.stepped), asked.stepped) for one in found]
    if kind == "missing":
        longer = [noise(rng, asked.stepped, history + 12) for _ in HEIGHTS]
        found = [found_within_values(x, history, height) for x, height in zip(longer, HEIGHTS, strict=True)]
        out["5 values"] = ["", "", "", *(f"{one:.0%}" for one in found)]
    return out


def of_other_tools(kind: str, history: int, asked: argparse.Namespace) -> dict[str, list[str]]:
    """Return the figures of one kind and history, by other tool."""
    noise = (NOISES | UNSEEN)[kind]
    rng = np.random.default_rng([asked.seed, history, len(kind), 1])
    quiet = noise(rng, asked.series, history + asked.nights)
    mixed, changed = noise(rng, 5 * asked.series, history + 5), max(1, asked.series // 20)
    mixed[:changed] = white(rng, changed, history + 5)
    mixed[:changed, -5:] += 8.0
    looks = [of_peers(asked.peers, quiet, history - 1), of_peers(asked.peers, mixed, history + 4)]
    for height in HEIGHTS if kind in STEPS else ():
        raised = noise(rng, asked.stepped, history + 5)
        raised[:, -5:] += height
        looks.append(of_peers(asked.peers, raised, history - 1))
    out = {}
    for name in looks[0]:
        hit = {number for number, _, place in looks[1][name] if place >= history - 2}
        wrong = sum(number >= changed for number in hit)
        found = [len({one[0] for one in later(look[name], history - 1)}) for look in looks[2:]]
        false = len(later(looks[0][name], history - 1))
        out[name] = [
            _share(false, asked.series * asked.nights, 1000.0, 1), _share(wrong, len(hit)), "",
            *(_share(one, asked.stepped) for one in found),
        ]  # fmt: skip
    return out


def main() -> None:
    """Print the tables."""
    parser = parser_of(__doc__)
    parser.add_argument("kinds", nargs="*", default=[*NOISES, *UNSEEN])
    parser.add_argument("--series", type=int, default=100, help="quiet ones; five times as many where 1 %% change")
    parser.add_argument("--stepped", type=int, default=200, help="series that all step")
    parser.add_argument("--nights", type=int, default=20)
    parser.add_argument("--looks", type=int, default=25, help="at nights on which 1 %% changed")
    parser.add_argument("--histories", type=int, nargs="*", default=list(HISTORIES))
    parser.add_argument("--runs", action="store_true", help="several runs a night, of white noise")
    parser.add_argument("--alone", action="store_true", help="each series without siblings")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--peers", metavar="PYTHON", help="that has the other tools")
    asked = parser.parse_args()
    if asked.runs:
        return _several(asked)
    if asked.alone:
        return _alone(asked)
    print(f"{'noise':20}{'history':>8} {'tool':10}{'false/1000':>16}{'share false, %':>22}{'first, %':>22}"
          f"{'2 sd, %':>14}{'3 sd, %':>14}")  # fmt: skip
    for kind in asked.kinds:
        for history in asked.histories:
            told = figures(kind, history, asked) | (of_other_tools(kind, history, asked) if asked.peers else {})
            for name, cells in told.items():
                row = "".join(f"{one:>{width}}" for one, width in zip(cells, (16, 22, 22, 14, 14), strict=False))
                print(f"{kind:20}{history:8} {name:10}{row}", flush=True)
            if kind in STEPS:
                rng = np.random.default_rng([asked.seed, history])
                for name, best in (
                    ("bound", [bound(history, height) for height in HEIGHTS]),
                    ("limit", [limit(rng, history, height) for height in HEIGHTS]),
                ):
                    print(f"{kind:20}{history:8} {name:70}" + "".join(f"{one:14.0%}" for one in best), flush=True)
    return None


def _alone(asked: argparse.Namespace) -> None:
    """Print false findings in 1000 nights, and the steps found, of series each of which is all that is measured."""
    print(f"{'noise':20}{'history':>8}{'false/1000':>16}{'2 sd, %':>14}{'3 sd, %':>14}")
    for kind in asked.kinds:
        for history in asked.histories:
            noise = (NOISES | UNSEEN)[kind]
            rng = np.random.default_rng([asked.seed, history, len(kind), 2])
            x = noise(rng, asked.series, history + asked.nights)
            told = walk(x[:, :, np.newaxis], history, alone=True)
            cells = [f"{_share(told.false, told.nights, 1000.0, 1):>16}"]
            for height in HEIGHTS:
                x = noise(rng, asked.stepped, history + NIGHTS)
                x[:, history:] += height
                found = walk(x[:, :, np.newaxis], history, alone=True).found if asked.stepped else 0
                cells.append(f"{_share(found, asked.stepped):>14}")
            print(f"{kind:20}{history:8}" + "".join(cells), flush=True)


def _several(asked: argparse.Namespace) -> None:
    for runs in (1, 2, 3, 5):
        for within in (0.0, 0.5, 2.0, 100.0):
            rng = np.random.default_rng([asked.seed, runs])
            x = several_runs(rng, white(rng, asked.series, 50 + asked.nights), runs, within)
            told = walk(x, 50)
            y = white(rng, 2 * asked.series, 55)
            found = [steps_found(rng, y, height, runs, within) for height in (2.0, 3.0)]
            print(
                f"{runs} runs, noise within {within:5g}{1000 * told.false / told.nights:11.2f}"
                f"{told.reruns / told.nights:8.1%}{found[0]:7.0%}{found[1]:7.0%}", flush=True
            )  # fmt: skip


if __name__ == "__main__":
    main()
