"""How well the first cause does on kernels that nobody had seen, and from which share of the time a cause stands out.

Run it with ``python -m tests.benchmarks.unseen [write]``. ``fixtures/first_sight`` holds what the rules said of each
set of pairs before anybody had looked at it: the set was scored, and only then were the rules mended. Beside it stands
what the rules of today say of all sets. Each set is left out in turn: the least share of each cause is fitted to what
the rules of today say of the others, and of kernels that were tuned step by step, and scored on what was said at first
sight of the one that is left out. Printed are the answers as they were given then and those with the fitted shares.
``write`` records what the rules of today say, fits all sets and writes the table
``profsvc/data/advice/least_shares.csv``. After a set was scored once, ``record SET`` adds what the rules of today say
of it to the answers at first sight.

The fit: cause c with the share s of the time has the odds ``(s / s_c) ** b`` to be the flaw, against those of 1 that
the launch is at its limit. ``b`` and the least shares ``s_c`` are the most likely ones, if 45 of 100 kernels have a
flaw, whatever their number among the sets. The logarithms of the ``s_c``
are drawn to the mean of their sort of evidence, so that a cause of few pairs has the share of its like.
"""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize

from profsvc import specs
from profsvc.analysis.causes.rows import is_proven, launch_causes
from profsvc.analysis.launches.characterization import attainable_shares
from profsvc.analysis.potential.launch_potential import launch_potentials
from profsvc.analysis.potential.peaks import peaks
from profsvc.specs.advice.causes import LEAST_SHARES, causes, least_shares
from profsvc.specs.table_files import DATA
from tests.benchmarks.causes import CAUSE_OF_LABEL, DEVICE, EXCLUDED, FIXTURES, FOLDERS, NO_FLAW, cases, stored
from tests.command_line import parser_of

RECORD = FIXTURES / "first_sight" / "attributions.csv.gz"
TODAY = FIXTURES / "first_sight" / "today.csv.gz"
# The second set with fewer counters is no other set.
SETS = [name for name in FOLDERS if name != "second"]
COLUMNS = ["set", "launch", "rank", "cause", "share", "proven", "flaw"]
# Kernels that were tuned step by step: what the next step removes is the flaw. The rules were designed on them.
TUNING = "tuning"
FLAWS = [name for name, cause in causes().items() if cause.kind == "flaw"]
# Smaller shares are noise, and are not recorded.
SMALLEST_SHARE = 1e-3
# Inverse variance of ln(s_c) times b, around the mean of the sort of evidence, of that mean, and of b.
OF_CAUSE, OF_EVIDENCE, OF_EXPONENT = 1.0, 0.02, 0.05
# Kernels with a flaw among all. With 0.5, four first causes more are right, and ten kernels fewer at their limit.
FLAWED = 0.45
Array = NDArray[np.float64]


class Launches(NamedTuple):
    """Launches of some sets: shares of proven causes, one column for each of `FLAWS`, and the flaw of each."""

    sets: list[str]
    shares: Array
    flaw: list[str]
    answers: list[list[str]]
    """Causes in the order of their rank, as the rules of that day gave them; of a launch at its limit, that first."""


class Fit(NamedTuple):
    """The exponent of the odds and the least share of each of `FLAWS`."""

    exponent: float
    least: Array


def recorded(path: Path = RECORD) -> Launches:
    """Return what was said at first sight, or by the rules of today."""
    table = pd.read_csv(path)
    places = list(table.groupby(["set", "launch"], sort=False))
    shares = np.zeros((len(places), len(FLAWS)))
    flaw, answers = [], []
    for place, (_, own) in enumerate(places):
        for row in own.itertuples():
            if row.cause in FLAWS and row.proven:
                shares[place, FLAWS.index(str(row.cause))] = row.share
        flaw.append(str(own["flaw"].iloc[0]))
        answers.append(own.sort_values("rank")["cause"].tolist())
    return Launches([str(key[0]) for key, _ in places], shares, flaw, answers)


def fitted(launches: Launches) -> Fit:
    """Return the most likely exponent and least shares."""
    kinds = [least_shares()[name].evidence for name in FLAWS]
    sorts = sorted(set(kinds))
    of_sort = np.array([[kind == one for one in sorts] for kind in kinds], dtype=np.float64)
    known = launches.shares > SMALLEST_SHARE
    logarithms = np.log(np.where(known, launches.shares, 1.0))
    has_flaw = np.array([one not in NO_FLAW for one in launches.flaw])
    counted = np.where(has_flaw, FLAWED / has_flaw.mean(), (1 - FLAWED) / (~has_flaw).mean())
    limit = len(FLAWS)
    target = np.array([FLAWS.index(flaw) if flaw in FLAWS else limit for flaw in launches.flaw])
    # A flaw without a share cannot be told from none.
    target = np.where(
        np.pad(known, ((0, 0), (0, 1)), constant_values=True)[np.arange(len(target)), target], target, limit
    )
    weights = np.concatenate([[OF_EXPONENT], np.full(len(sorts), OF_EVIDENCE), np.full(len(FLAWS), OF_CAUSE)])

    def loss(parameters: Array) -> tuple[float, Array]:
        exponent, means, own = parameters[0], parameters[1 : 1 + len(sorts)], parameters[1 + len(sorts) :]
        odds = np.where(known, exponent * logarithms + of_sort @ means + own, -np.inf)
        every = np.column_stack([odds, np.zeros(len(odds))])
        chance = np.exp(every - np.logaddexp.reduce(every, axis=1)[:, None])
        step = (counted[:, None] * (chance - np.eye(limit + 1)[target]))[:, :limit]
        gradient = np.concatenate([[np.sum(step * logarithms)], step.sum(axis=0) @ of_sort, step.sum(axis=0)])
        total = -(counted * np.log(chance[np.arange(len(target)), target])).sum() + (weights * parameters**2).sum() / 2
        return float(total), gradient + weights * parameters

    found = minimize(loss, np.concatenate([[1.0], np.zeros(len(weights) - 1)]), jac=True, method="L-BFGS-B").x
    least = np.exp(-(of_sort @ found[1 : 1 + len(sorts)] + found[1 + len(sorts) :]) / found[0])
    return Fit(float(found[0]), np.clip(least, None, 1.0))


def answered(shares: Array, least: Array) -> list[list[str]]:
    """Return the causes of each launch by the factor to their least share; "limit" stands first if none exceeds it."""
    ratio = shares / least
    order = np.argsort(-ratio, axis=1, kind="stable")
    names = [[FLAWS[column] for column in row] for row in order]
    return [own if top > 1 else ["limit", *own] for own, top in zip(names, ratio.max(axis=1), strict=True)]


def score(flaw: Sequence[str], answers: Sequence[Sequence[str]]) -> Array:
    """Return counts: pairs, first right, one of the first two right, kernels without a flaw, those at their limit."""
    flawed = [(one, own) for one, own in zip(flaw, answers, strict=True) if one not in NO_FLAW]
    others = [own for one, own in zip(flaw, answers, strict=True) if one in NO_FLAW]
    return np.array(
        [
            len(flawed),
            sum(own[0] == one for one, own in flawed),
            sum(one in own[:2] for one, own in flawed),
            len(others),
            sum(own[0] not in FLAWS for own in others),
        ],
        dtype=np.float64,
    )


def _of(launches: Launches, places: Sequence[int]) -> Launches:
    sets, flaw, answers = ([values[place] for place in places] for values in (launches[0], launches[2], launches[3]))
    return Launches(sets, launches.shares[list(places)], flaw, answers)


def design(launches: Launches, today: Launches) -> Launches:
    """Return what shares are fitted to: the sets by the rules of today, and the kernels tuned step by step."""
    tuned = _of(launches, [place for place, one in enumerate(launches.sets) if one == TUNING])
    shares = np.concatenate([today.shares, tuned.shares])
    return Launches(today.sets + tuned.sets, shares, today.flaw + tuned.flaw, today.answers + tuned.answers)


def left_out(launches: Launches, today: Launches) -> dict[str, tuple[Array, Array]]:
    """Return for each set the counts of `score`: as answered then, and with the shares fitted to the other sets."""
    found, known = {}, design(launches, today)
    for name in dict.fromkeys(one for one in launches.sets if one != TUNING):
        own = _of(launches, [place for place, one in enumerate(launches.sets) if one == name])
        rest = _of(known, [place for place, one in enumerate(known.sets) if one != name])
        answers = answered(own.shares, fitted(rest).least)
        found[name] = score(own.flaw, own.answers), score(own.flaw, answers)
    return found


def _text(counts: Array) -> str:
    flawed, first, second, others, limit = counts
    return f"{first:.0f}, {second:.0f} of {flawed:.0f} ({first / flawed:.0%}, {second / flawed:.0%}); " + (
        f"{limit:.0f} of {others:.0f} ({limit / others:.0%})"
    )


def said_today(name: str) -> pd.DataFrame:
    """Return what the rules of today say of a set, with the columns `COLUMNS`."""
    counters = stored(FOLDERS[name]).counters
    figures = peaks(counters, specs.figures(*DEVICE))[0]
    # Whether a cause stands out is told by all that it takes, with what other versions lose as well.
    bounds, _ = launch_potentials(counters, figures, attainable_shares(specs.criteria(), {}))
    rows = launch_causes(counters, figures, bounds)
    labels = cases(FOLDERS[name])
    excluded = {int(one["launch"]) for one in labels if one.get("set") == EXCLUDED}
    flaws = {int(one["launch"]): CAUSE_OF_LABEL.get(one["flaw"], one["flaw"]) for one in labels}
    rows = rows[~rows["launch_id"].isin(excluded) & ((rows["rank"] <= 2) | (rows["saving_fraction"] > SMALLEST_SHARE))]
    proven = {cause: is_proven(cause, counters) for cause in rows["cause"].unique()}
    return pd.DataFrame(
        {
            "set": name,
            "launch": rows["launch_id"],
            "rank": rows["rank"],
            "cause": rows["cause"],
            "share": rows["saving_fraction"].round(4),
            "proven": [int(proven[row.cause][row.launch_id]) for row in rows.itertuples()],
            "flaw": [flaws[launch] for launch in rows["launch_id"]],
        }
    )


def record(name: str) -> None:
    """Add what the rules of today say of a set to the answers at first sight."""
    table = pd.read_csv(RECORD)
    if name in set(table["set"]):
        raise SystemExit(f"{RECORD.name} has the set {name!r} already: it was recorded when nobody had seen it")
    _save(pd.concat([table, said_today(name)], ignore_index=True), RECORD)


def _save(table: pd.DataFrame, path: Path) -> None:
    table[COLUMNS].to_csv(path, index=False, compression={"method": "gzip", "mtime": 0})


def write(fit: Fit, launches: Launches, path: Path) -> None:
    """Write the table of least shares; ``pairs`` counts those that a share comes from."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["cause", "evidence", "least_share", "pairs"])
        for name, least in zip(FLAWS, fit.least, strict=True):
            writer.writerow([name, least_shares()[name].evidence, f"{least:.2f}", launches.flaw.count(name)])


def main(arguments: Sequence[str]) -> dict[str, tuple[Array, Array]]:
    """Print both scores of each set; return them."""
    parser = parser_of(__doc__)
    acts = parser.add_subparsers(dest="act", metavar="write | record SET")
    acts.add_parser("write", help="record what the rules of today say, and write the table")
    acts.add_parser("record", help="add what they say of a set to the answers at first sight").add_argument("set")
    asked = parser.parse_args(arguments)
    if asked.act == "record":
        record(asked.set)
    if asked.act == "write":
        _save(pd.concat([said_today(name) for name in SETS], ignore_index=True), TODAY)
    launches, today = recorded(), recorded(TODAY)
    found = left_out(launches, today)
    total = tuple(np.sum([pair[place] for pair in found.values()], axis=0) for place in range(2))
    print("set, and whose shares: first, one of the first two of the flawed kernels; others at their limit")
    for name, pair in (found | {"all": (total[0], total[1])}).items():
        for title, counts in zip(("as answered", "left out"), pair, strict=True):
            print(f"{name:13}{title:12}{_text(counts)}")
    known = design(launches, today)
    fit = fitted(known)
    print(f"odds rise with the share to the power of {fit.exponent:.2f}")
    if asked.act == "write":
        write(fit, known, DATA / LEAST_SHARES)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
