"""Kernels of a night that are new, vanished, back, or launched in another way without a change of their time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from profsvc import specs, store
from profsvc.analysis.changes.differences import differences
from profsvc.analysis.changes.night_values import with_nights
from profsvc.analysis.changes.renames import HISTORY
from profsvc.analysis.changes.series import with_texts
from profsvc.pipeline.nightly.renames import MIN_NIGHTS, Renames

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
PARTS = ("launch", "resources")
NAMES = ("project", "device", "branch", "subject", "run_id")
APPEARED, VANISHED, RETURNED, RENAMED, LAUNCHED = "appeared", "vanished", "returned", "renamed", "launched"


def kernel_changes(
    engine: "Engine", points: pd.DataFrame, tonight: Iterable[int], renamed: Renames, zone: str = "UTC"
) -> list[Row]:
    """Return kernels that are new, vanished, back, renamed or launched differently in the runs of a night: change,
    project, device, branch, kernel, subject, run_id and, as far as they are known, time_ns and differences. One that is
    renamed has the name, the median time and the run-to-run noise (standard deviation / median) that it had before; one
    that is new has ``because``, where it may be an old one and nothing decides which; one that vanished has ``of``, how
    many ran each night; one that is back has the time that it had before and the ``nights`` without it.

    ``points`` are those of all series. Kernels are compared with those of the same project, device, branch and tool.
    ``zone``: in which a night is a date.
    """
    if points.empty:
        return []
    rows = [{"change": RENAMED, **row} for row in sorted(renamed.rows, key=lambda row: str(row["kernel"]))]
    timed = (points["kind"] == "duration") & (points["quantity"] == "duration") & points["kernel"].notna()
    own = with_nights(points.loc[timed, [*NAMES, "kernel", "sensor", "at", "value"]], zone)
    fresh, pairs = set(tonight), list[tuple[Row, Row, str]]()
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
        before, since = (_newest_of_kernels(side) for side in (others[others["at"] < new["at"].max()], new))
        pairs += [
            (before[kernel], point, kernel) for kernel, point in since.items()
            if kernel in before and before[kernel]["at"] < point["at"]
        ]  # fmt: skip
    told = {tuple(row[name] for name in (*HISTORY, "kernel")) for row in rows if row["change"] == RENAMED}
    pairs = [pair for pair in pairs if tuple(pair[1][name] for name in (*HISTORY, "kernel")) not in told]
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


def _launched_differently(engine: "Engine", pairs: Sequence[tuple[Any, Any, Any]]) -> list[Row]:
    run_ids = sorted({int(point["run_id"]) for pair in pairs for point in pair[:2]})
    names = [name for name, fact in specs.change_facts().items() if fact.part in PARTS]
    facts = store.facts_of_runs(engine, run_ids, {str(pair[2]) for pair in pairs}, names)
    facts = facts[facts["kernel"].notna()]
    by_kernel = dict(list(facts.groupby("kernel")))
    rows = []
    for old, new, kernel in pairs:
        if kernel not in by_kernel:
            continue
        told = differences(by_kernel[kernel], {old["run_id"]}, {new["run_id"]})
        if told := [one for one in told if one["part"] in PARTS]:
            rows.append(_row(LAUNCHED, new) | {"differences": told})
    return rows
