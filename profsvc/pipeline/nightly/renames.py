"""Kernels that are renamed in the runs of a night, so that their series go on."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc import specs, store
from profsvc.analysis.changes.differences import differences
from profsvc.analysis.changes.kernels.rename_search import Candidate, evidence_text, find_pairs
from profsvc.analysis.changes.kernels.renames import (
    HISTORY,
    LINKED,
    REFUSED,
    History,
    KernelNames,
    KnownRenames,
    Rename,
)
from profsvc.analysis.changes.series.night_values import night_dates

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]
MIN_NIGHTS = 3
"""Nights on each of which a kernel ran before it counts as vanished."""
MAX_NOISE_RUNS = 30
"""Earlier runs of a kernel that say what its time was and how it scattered."""
TRAITS = (
    "grid", "block", "launches", "registers_per_thread", "shared_mem_static_bytes", "shared_mem_dynamic_bytes",
    "inst_executed_warp", "thread_inst_executed_pred_on",
)  # fmt: skip
COUNTERS = TRAITS[-2:]
FACTS = ("run_id", "kernel", "fact", "basis", "value", "text")


class Renames(NamedTuple):
    """What a night says of the names of kernels."""

    renames: list[Rename]  # without those that a person linked
    rows: list[Row]  # of each: kernel, kernel_before, before_ns, time_ns, noise, differences and what it is of
    refused: dict[tuple[Any, ...], str]  # project, device, branch and name of a new kernel -> why it is not an old one


class _Night(NamedTuple):
    engine: "Engine"
    at: Any  # time of each run, by place
    days: Sequence[str]  # its date in the time zone of the report
    tonight: frozenset[int]
    names: KernelNames  # that are known from before
    known: KnownRenames
    told: Renames  # what is found so far


def find_renames(
    engine: "Engine", points: pd.DataFrame, runs: pd.DataFrame, tonight: Collection[int], names: KernelNames,
    known: KnownRenames, zone: str = "UTC",
) -> Renames:  # fmt: skip
    """Return the kernels that have another name since one of the runs of a night.

    ``points`` are those of `profsvc.analysis.changes.series.run_series.run_points`, those of before the night under
    the newest of ``names``; ``runs`` those of all histories, the oldest first. ``known`` has what people decided,
    ``zone`` is the one in which a night is a date.
    """
    told, at = Renames([], [], {}), runs["at"].to_numpy(object)
    night = _Night(engine, at, night_dates(at, zone).astype(str).tolist(), frozenset(tonight), names, known, told)
    own = _points_with_new_kernels(points, runs, tonight)
    for _, group in own.groupby([*HISTORY, "quantity", "sensor"], dropna=False, sort=True):
        _look_at_group(night, group)
    renamed = {(*(row[name] for name in HISTORY), row["kernel"]) for row in told.rows}
    return told._replace(refused={key: why for key, why in told.refused.items() if key not in renamed})


def _points_with_new_kernels(points: pd.DataFrame, runs: pd.DataFrame, tonight: Collection[int]) -> pd.DataFrame:
    """Return the times of histories, each of one tool, in which a kernel comes after the first run; with ``place``."""
    timed = ((points["kind"] == "duration") & points["kernel"].notna()).to_numpy()
    own = points.loc[timed, [*HISTORY, "quantity", "sensor", "kernel", "subject", "run_id", "value"]]
    place = pd.Index(runs["run_id"]).get_indexer(own["run_id"])
    number, first = np.zeros(len(own), dtype=np.int64), []
    for name in [*HISTORY, "quantity", "sensor", "kernel"]:
        if name == "kernel":
            history = number
            first.append(pd.Series(place).groupby(number).transform("min").to_numpy())
        number = pd.factorize(number * (len(own) + 1) + pd.factorize(own[name])[0] + 1)[0]
    first.append(pd.Series(place).groupby(number).transform("min").to_numpy())
    late = (first[1] > first[0]) & np.isin(runs["run_id"].to_numpy()[first[1]], list(tonight))
    inside = np.isin(history, np.unique(history[late]))
    own = own[inside].astype(dict.fromkeys((*HISTORY, "quantity", "sensor", "kernel", "subject"), object))
    return own.assign(place=place[inside]).sort_values("place", kind="stable")


def _look_at_group(night: _Night, group: pd.DataFrame) -> None:
    """Look at the runs of one tool, in order, for kernels that vanish as others appear."""
    history = _history(group.iloc[0])
    last = {str(kernel): int(place) for kernel, place in zip(group["kernel"], group["place"], strict=True)}
    called = {one.newest: list(one.all) for (of, _), one in night.names.known.items() if of == history}
    days: dict[str, set[str]] = {}
    known: set[str] = set()
    for place, rows in [(int(rows["place"].iloc[0]), rows) for _, rows in group.groupby("place", sort=True)]:
        names, day = set(rows["kernel"]), str(night.days[place])
        before = [own for other, own in days.items() if other < day][-MIN_NIGHTS:]
        appeared = sorted(names - known)
        if appeared and int(rows["run_id"].iloc[0]) in night.tonight and len(before) == MIN_NIGHTS:
            vanished = sorted(name for name in set.intersection(*before) if last[name] < place)
            for old, new in _link(night, group, place, vanished, appeared, called) if vanished else ():
                called[new] = [*called.pop(old, [old]), new]
                known.discard(old)
                for own in days.values():
                    if old in own:
                        own.symmetric_difference_update({old, new})
        known |= names
        days.setdefault(day, set()).update(names)
        while len(days) > MIN_NIGHTS + 1:
            days.pop(next(iter(days)))


def _history(row: Any) -> History:
    device, branch = (None if pd.isna(row[name]) else str(row[name]) for name in HISTORY[1:])
    return str(row["project"]), device, branch


def _link(
    night: _Night, group: pd.DataFrame, place: int, vanished: Sequence[str], appeared: Sequence[str],
    called: Mapping[str, Sequence[str]],
) -> list[tuple[str, str]]:  # fmt: skip
    """Pair the kernels that vanished before a run with those that appear in it, and tell the pairs."""
    earlier, own = group[group["place"] < place], group[group["place"] == place]
    run_id, history = int(own["run_id"].iloc[0]), _history(own.iloc[0])
    before = {kernel: earlier[earlier["kernel"].isin(called.get(kernel, [kernel]))] for kernel in vanished}
    times = {kernel: rows["value"].tail(MAX_NOISE_RUNS).tolist() for kernel, rows in before.items()}
    last_run = {kernel: int(rows["run_id"].iloc[-1]) for kernel, rows in before.items()}
    now = dict(zip(own["kernel"], own["value"], strict=True))
    subjects = dict(zip(own["kernel"], own["subject"], strict=True))
    wanted = sorted({run_id, *last_run.values()})
    facts = store.facts_of_runs(night.engine, wanted, [*vanished, *appeared], COUNTERS)
    facts = facts[facts["fact"].isin(TRAITS) & facts["kernel"].notna()]
    traits = _traits(facts)
    linked, apart = (night.known.decided(history[0], decision) for decision in (LINKED, REFUSED))
    search = find_pairs(
        [Candidate(kernel, times[kernel], traits.get((last_run[kernel], kernel), {})) for kernel in vanished],
        [Candidate(kernel, [float(now[kernel])], traits.get((run_id, kernel), {})) for kernel in appeared],
        set(now) - set(appeared),
        apart,
    )
    former = {new: old for old in vanished for new in appeared if new in called.get(old, ())}
    reasons = {
        new: (old, evidence_text(evidence, _titles(traits.get((run_id, new), {}))))
        for new, (old, evidence) in search.pairs.items()
        if new not in former and old not in former.values()
    }
    reasons |= {
        new: (old, linked[old, new].text if (old, new) in linked else "a name that it had before")
        for new, old in former.items()
    }
    told = [row for row in night.told.rows if tuple(row[name] for name in HISTORY) == history]
    for new, (old, because) in reasons.items():
        if any(row["kernel"] == new or row["kernel_before"] == old for row in told):  # by another tool
            continue
        if (old, new) not in linked:
            night.told.renames.append(Rename(*history, old, new, run_id, str(night.at[place]), because))
        both, level = facts[facts["kernel"].isin([old, new])].assign(kernel=new), float(np.median(times[old]))
        night.told.rows.append(
            dict(zip(HISTORY, history, strict=True))
            | {"kernel": new, "kernel_before": old, "subject": subjects[new], "run_id": run_id, "because": because}
            | {"before_ns": level, "time_ns": float(now[new])}
            | {"noise": float(np.std(times[old], ddof=1)) / level if len(times[old]) > 1 else None}
            | {"differences": differences(both, {last_run[old]}, {run_id})}
        )
    refused = {new: apart[old, new].text for old in vanished for new in appeared if (old, new) in apart}
    night.told.refused.update({(*history, new): why for new, why in (search.refused | refused).items()})
    return [(old, new) for new, (old, _) in reasons.items()]


def _titles(traits: Iterable[tuple[str, str]]) -> list[str]:
    known = {what for what, _ in traits}
    return [specs.change_facts()[what].title for what in TRAITS if what in known]


def _traits(facts: pd.DataFrame) -> dict[tuple[int, str], dict[tuple[str, str], float | str]]:
    found: dict[tuple[int, str], dict[tuple[str, str], float | str]] = {}
    for run_id, kernel, fact, basis, value, text in facts[list(FACTS)].to_numpy(object).tolist():
        found.setdefault((int(run_id), kernel), {})[fact, basis] = float(value) if pd.isna(text) else str(text)
    return found
