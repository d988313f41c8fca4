"""Kernels of a night that are new, vanished, back, or launched in another way without a change of their time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from profsvc import specs, store
from profsvc.analysis.changes.differences import differences
from profsvc.analysis.changes.kernels.renames import HISTORY
from profsvc.analysis.changes.series.night_values import with_nights
from profsvc.analysis.changes.series.run_series import with_texts
from profsvc.pipeline.nightly.renames import MIN_NIGHTS, Renames

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
PARTS = ("launch", "resources")
NAMES = ("project", "device", "branch", "subject", "run_id")
APPEARED, VANISHED, RETURNED, RENAMED, LAUNCHED = "appeared", "vanished", "returned", "renamed", "launched"


class _Pair(NamedTuple):
    """The newest points of a kernel before a night and in it, and the points of all kernels before the night."""

    kernel: str
    before: Row
    since: Row
    others: pd.DataFrame


def kernel_changes(
    engine: "Engine", points: pd.DataFrame, tonight: Iterable[int], renamed: Renames, zone: str = "UTC"
) -> list[Row]:
    """Return kernels that are new, vanished, back, renamed or launched differently in the runs of a night: change,
    project, device, branch, kernel, subject, run_id and, as far as they are known, time_ns and differences. One that is
    renamed has the name, the median time and the run-to-run noise (standard deviation / median) that it had before; one
    that is new has ``because``, where it may be an old one and nothing decides which; one that vanished has ``of``, how
    many ran each night; one that is back has the time that it had before and the ``nights`` without it.

    A launch that was another one within the three runs before too changes by itself, and is not told: a suite whose
    input differs from night to night launches its kernels another number of times each night.

    ``points`` are those of all series. Kernels are compared with those of the same project, device, branch and tool.
    ``zone``: in which a night is a date.
    """
    if points.empty:
        return []
    rows = [{"change": RENAMED, **row} for row in sorted(renamed.rows, key=lambda row: str(row["kernel"]))]
    timed = (points["kind"] == "duration") & (points["quantity"] == "duration") & points["kernel"].notna()
    own = with_nights(points.loc[timed, [*NAMES, "kernel", "sensor", "at", "value"]], zone)
    fresh, pairs = set(tonight), list[_Pair]()
    for _, group in own.groupby(["project", "device", "branch", "sensor"], dropna=False, sort=True):
        new = with_texts(group[group["run_id"].isin(list(fresh))])
        others = group[~group["run_id"].isin(list(fresh))]
        if new.empty:
            continue
        # A run that was uploaded late stands in the middle: what came or went since is known.
        old, later = (others[(others["at"] < new["at"].min()) == before] for before in (True, False))
        nights = sorted(old["night"].unique().tolist())[-MIN_NIGHTS:]
        if len(nights) < MIN_NIGHTS:
            continue
        rows += list(_come_and_gone(old, new, set(later["kernel"]), nights, renamed.refused))
        rows += list(_back(old, new, set(later["kernel"])))
        others = others[others["at"] < new["at"].max()]
        before, since = (_newest_of_kernels(side) for side in (others, new))
        pairs += [
            _Pair(kernel, before[kernel], point, others) for kernel, point in since.items()
            if kernel in before and before[kernel]["at"] < point["at"]
        ]  # fmt: skip
    told = {tuple(row[name] for name in (*HISTORY, "kernel")) for row in rows if row["change"] == RENAMED}
    pairs = [pair for pair in pairs if tuple(pair.since[name] for name in (*HISTORY, "kernel")) not in told]
    return rows + _launched_differently(engine, pairs)


def _newest_of_kernels(side: pd.DataFrame) -> dict[str, Row]:
    """Return the newest point of each kernel; those of a kernel are in the order of their runs."""
    newest = with_texts(side[["kernel", *NAMES, "at", "value"]].drop_duplicates("kernel", keep="last"))
    return {row["kernel"]: {str(name): value for name, value in row.items()} for row in newest.to_dict("records")}


def _come_and_gone(
    old: pd.DataFrame,
    new: pd.DataFrame,
    later: set[str],
    nights: Sequence[int],
    refused: Mapping[tuple[Any, ...], str],
) -> Iterator[Row]:
    known, seen = {*old["kernel"], *later}, {*new["kernel"], *later}
    fresh = new[~new["kernel"].isin(list(known))].drop_duplicates("kernel")
    lasting = old[old["night"] >= nights[0]]
    counts = lasting.groupby("kernel", observed=True)["night"].nunique()
    gone = [str(kernel) for kernel in counts.index[counts == len(nights)] if kernel not in seen]
    for _, point in fresh.iterrows():
        why = refused.get(tuple(point[name] for name in (*HISTORY, "kernel")))
        yield _row(APPEARED, point) | ({"because": why} if why else {})
    newest = with_texts(lasting[lasting["kernel"].isin(gone)].drop_duplicates("kernel", keep="last"))
    of = int((counts == len(nights)).sum())
    for _, point in newest.set_index("kernel", drop=False).loc[gone].iterrows():
        yield _row(VANISHED, point) | {"of": of}


def _back(old: pd.DataFrame, new: pd.DataFrame, later: set[str]) -> Iterator[Row]:
    """Yield kernels that ran again after nights without them, if they had run on each of three nights before."""
    nights = sorted(old["night"].unique().tolist())
    last = old.groupby("kernel", observed=True)["night"].max()
    left = set(last.index[last < nights[-1]]) - later
    found = new[new["kernel"].isin(list(left))].drop_duplicates("kernel").sort_values("kernel")
    if found.empty:
        return
    number = old["night"].map({night: place for place, night in enumerate(nights)})
    own = old.assign(number=number)[old["kernel"].isin(found["kernel"].tolist())]
    newest = own.groupby("kernel", observed=True)["number"].transform("max")
    lasting = own[own["number"] > newest - MIN_NIGHTS].groupby("kernel", observed=True)
    before = lasting.agg(nights=("number", "nunique"), until=("number", "max"), value=("value", "median"))
    for _, point in found.iterrows():
        since = before.loc[point["kernel"]]
        if since["nights"] == MIN_NIGHTS:
            missing = len(nights) - 1 - int(since["until"])
            yield _row(RETURNED, point) | {"before_ns": float(since["value"]), "nights": missing}


def _row(change: str, point: Any) -> Row:
    return {"change": change, "time_ns": float(point["value"]), "differences": [], "kernel": point["kernel"]} | {
        name: point[name] for name in NAMES
    }


def _launched_differently(engine: "Engine", pairs: Sequence[_Pair]) -> list[Row]:
    runs = [[int(point["run_id"]) for point in (pair.before, pair.since)] for pair in pairs]
    told = _differences(engine, pairs, runs)
    changed = [(pair, told[place]) for place, pair in enumerate(pairs) if told[place]]
    usual = _usual_differences(engine, [pair for pair, _ in changed])
    rows = []
    for (pair, own), known in zip(changed, usual, strict=True):
        if own := [one for one in own if one["fact"] not in known]:
            rows.append(_row(LAUNCHED, pair.since) | {"differences": own})
    return rows


def _usual_differences(engine: "Engine", pairs: Sequence[_Pair]) -> list[set[str]]:
    """Return what differed among the runs of each kernel before a night."""
    out = [set[str]() for _ in pairs]
    number = {id(pair.others): pair.others for pair in pairs}
    runs_of = dict[tuple[int, str], list[int]]()
    for key, others in number.items():
        own = others[others["kernel"].isin([pair.kernel for pair in pairs if id(pair.others) == key])]
        for kernel, run_ids in own.groupby("kernel", observed=True)["run_id"]:
            runs_of[key, str(kernel)] = [int(run_id) for run_id in run_ids.iloc[-MIN_NIGHTS:]]
    runs = [runs_of[id(pair.others), pair.kernel] for pair in pairs]
    for back in range(1, MIN_NIGHTS):
        earlier = [own[-back - 1 : len(own) - back + 1] for own in runs]
        for place, told in enumerate(_differences(engine, pairs, earlier)):
            out[place] |= {str(one["fact"]) for one in told}
    return out


def _differences(engine: "Engine", pairs: Sequence[_Pair], runs: Sequence[Sequence[int]]) -> list[list[Row]]:
    """Return what differs of each kernel between two runs; nothing where there are not two."""
    run_ids = sorted({run_id for own in runs for run_id in own})
    names = [name for name, fact in specs.change_facts().items() if fact.part in PARTS]
    facts = store.facts_of_runs(engine, run_ids, {pair.kernel for pair in pairs}, names)
    facts = facts[facts["kernel"].notna()]
    by_kernel = dict(list(facts.groupby("kernel")))
    out = []
    for pair, own in zip(pairs, runs, strict=True):
        known = len(own) == 2 and pair.kernel in by_kernel
        told = differences(by_kernel[pair.kernel], own[:1], own[1:]) if known else []
        out.append([one for one in told if one["part"] in PARTS])
    return out
