"""Kernels that go on under another name: the histories of both names are one series.

A series is named by the oldest name of its kernel, so that findings of before stay with it, and shown under the newest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc.kernel_names import short_kernel_name

HISTORY = ("project", "device", "branch")
History = tuple[str, str | None, str | None]


class Rename(NamedTuple):
    """A kernel that goes on under another name since a run; ``because`` is the evidence."""

    project: str
    device: str | None
    branch: str | None
    kernel_before: str
    kernel: str
    run_id: int
    renamed_at: str
    because: str

    @property
    def history(self) -> History:
        """The history that both names are of."""
        return self.project, self.device, self.branch


LINKED, REFUSED, AUTOMATIC = "linked", "refused", "automatic"


class RenameDecision(NamedTuple):
    """What a person said of two names in all histories of a project: one kernel, two, or that reports decide."""

    project: str
    kernel_before: str
    kernel: str
    decision: str
    said_by: str
    because: str
    said_at: str

    @property
    def text(self) -> str:
        """The decision as evidence."""
        return f"{self.decision} by {self.said_by}: {self.because}"


class KnownRenames(NamedTuple):
    """Renames that reports found, and the newest decision of people about each two names."""

    found: Sequence[Rename] = ()
    decisions: Sequence[RenameDecision] = ()

    def decided(self, project: str, decision: str) -> dict[tuple[str, str], RenameDecision]:
        """Return the decisions of one kind in a project, by both orders of their names."""
        own = [one for one in self.decisions if one.project == project and one.decision == decision]
        return {pair: one for one in own for pair in _both_orders(one)}

    def concerns(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a person decided about the kernel of a finding."""
        return any(
            one.project == row["project"] and row["kernel"] in (one.kernel_before, one.kernel)
            for one in self.decisions
        )  # fmt: skip


class Names(NamedTuple):
    """All names of one kernel."""

    oldest: str
    newest: str
    all: frozenset[str]


class KernelNames(NamedTuple):
    """The kernels of histories that have several names."""

    known: Mapping[tuple[History, str], Names]

    def of(self, row: Mapping[str, Any]) -> Names:
        """Return the names of the kernel of a finding, of a point, or of a row like them."""
        kernel = str(row["kernel"])
        alone = Names(kernel, kernel, frozenset([kernel]))
        return self.known.get(((row["project"], row["device"], row["branch"]), kernel), alone) if self.known else alone

    def under_newest(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of a kernel under its newest name."""
        if not row["kernel"] or (newest := self.of(row).newest) == row["kernel"]:
            return dict(row)
        return dict(row) | {"kernel": newest, "subject": renamed_subject(row["subject"], row["kernel"], newest)}

    def with_newest_name(self, frame: pd.DataFrame, row: Mapping[str, Any]) -> pd.DataFrame:
        """Return a frame with the kernel of ``row`` under its newest name, whatever it was called in each run."""
        names = self.of(row)
        if len(names.all) == 1:
            return frame
        return frame.assign(kernel=frame["kernel"].where(~frame["kernel"].isin(list(names.all)), names.newest))


def kernel_names(known: KnownRenames, points: pd.DataFrame, runs: pd.DataFrame) -> KernelNames:
    """Return the names that renames make one kernel, the oldest rename first.

    A rename is none where it would make one kernel of names that a person refused, directly or through others, or of
    which one run has two: then they are two kernels. ``points``: project, device, branch, kernel, run_id; ``runs``:
    run_id, at, the oldest first.
    """
    if not known.found and not known.decisions:
        return KernelNames({})
    seen = _runs_of_kernels([*known.found, *known.decisions], points, runs)
    linked = _linked(known.decisions, seen, runs)
    refused = {(one.project, *pair) for one in known.decisions if one.decision == REFUSED for pair in _both_orders(one)}
    classes: dict[tuple[History, str], list[str]] = {}
    for one in sorted([*known.found, *linked], key=lambda one: (one.renamed_at, one.run_id)):
        sides = [classes.get((one.history, name), [name]) for name in (one.kernel_before, one.kernel)]
        in_runs = [set().union(*(seen.get((one.history, name), ()) for name in side)) for side in sides]
        apart = any((one.project, old, new) in refused for old in sides[0] for new in sides[1])
        if sides[0] is sides[1] or in_runs[0] & in_runs[1] or apart:
            continue
        joined = [*sides[0], *sides[1]]
        classes |= dict.fromkeys(((one.history, name) for name in joined), joined)
    names = {}
    for (history, name), joined in classes.items():
        newest = max(reversed(joined), key=lambda one: max(seen.get((history, one), ()), default=-1))
        names[history, name] = Names(joined[0], newest, frozenset(joined))
    return KernelNames(names)


def connected_names(kernel: str, pairs: Iterable[tuple[str, str]]) -> set[str]:
    """Return the names that pairs of names lead to from a kernel, its own among them.

    >>> sorted(connected_names("a", [("b", "c"), ("a", "b"), ("d", "e")]))
    ['a', 'b', 'c']
    """
    names, others = {kernel}, [set(pair) for pair in pairs]
    while more := set[str]().union(*(pair for pair in others if pair & names)) - names:
        names |= more
    return names


def _both_orders(one: RenameDecision) -> tuple[tuple[str, str], tuple[str, str]]:
    return (one.kernel_before, one.kernel), (one.kernel, one.kernel_before)


def _linked(
    decisions: Iterable[RenameDecision], seen: Mapping[tuple[History, str], set[int]], runs: pd.DataFrame
) -> Iterator[Rename]:
    """Yield the renames of linked names, one for each history that has one of them."""
    for one in decisions:
        if one.decision != LINKED:
            continue
        pair = (one.kernel_before, one.kernel)
        for history in dict.fromkeys(of for of, name in seen if of[0] == one.project and name in pair):
            places = [seen.get((history, name), set()) for name in pair]
            first = runs.iloc[min(places[1] or places[0])]
            yield Rename(*history, *pair, int(first["run_id"]), str(first["at"]), one.text)


def _runs_of_kernels(
    pairs: Iterable[Rename | RenameDecision], points: pd.DataFrame, runs: pd.DataFrame
) -> dict[tuple[History, str], set[int]]:
    """Return the places of the runs that have each of these names."""
    asked = {name for one in pairs for name in (one.kernel_before, one.kernel)}
    own = points.loc[points["kernel"].isin(asked), [*HISTORY, "kernel", "run_id"]].drop_duplicates()
    place = pd.Index(runs["run_id"]).get_indexer(own["run_id"])
    seen: dict[tuple[History, str], set[int]] = {}
    cells = own[[*HISTORY, "kernel"]].astype(object)
    cells = cells.where(cells.notna(), None)
    for (*history, kernel), number in zip(cells.itertuples(index=False, name=None), place.tolist(), strict=True):
        seen.setdefault((tuple(history), kernel), set()).add(number)
    return seen


def under_newest_names(points: pd.DataFrame, names: KernelNames, among: pd.Series | None = None) -> pd.DataFrame:
    """Return points with each kernel under its newest name.

    ``points`` are those of `profsvc.analysis.changes.series.run_series.run_points`; ``among``: those that are meant,
    by default all.
    """
    histories: dict[History, dict[str, str]] = {}
    for (history, name), own in names.known.items():
        if own.newest != name:
            histories.setdefault(history, {})[name] = own.newest
    if not histories:
        return points
    columns = {name: points[name].cat for name in ("kernel", "subject")}
    codes = {name: column.codes.to_numpy(np.int64, copy=True) for name, column in columns.items()}
    places = {name: {text: code for code, text in enumerate(column.categories)} for name, column in columns.items()}
    for history, newest in histories.items():
        inside = points["kernel"].isin(list(newest)).to_numpy(copy=True)
        inside &= True if among is None else among.to_numpy()
        for name, value in zip(HISTORY, history, strict=True):
            inside &= (points[name].isna() if value is None else points[name] == value).to_numpy()
        rows = np.flatnonzero(inside)
        pairs = np.stack([codes[name][rows] for name in codes], axis=1)
        for old, subject in np.unique(pairs, axis=0).tolist():
            same = rows[(pairs[:, 0] == old) & (pairs[:, 1] == subject)]
            kernel = str(columns["kernel"].categories[old])
            now = newest[kernel], renamed_subject(str(columns["subject"].categories[subject]), kernel, newest[kernel])
            for (name, place), text in zip(places.items(), now, strict=True):
                codes[name][same] = place.setdefault(text, len(place))
    return points.assign(
        **{name: pd.Categorical.from_codes(codes[name], pd.Index(list(place), dtype=object))
           for name, place in places.items()}
    )  # fmt: skip


def renamed_subject(subject: str, old: str, new: str) -> str:
    """Return the short name of a kernel, or the label of a window that has it, under another name.

    >>> renamed_subject("saxpy", "saxpy(int)", "void v2::saxpy_fast<4>(int)")
    'saxpy_fast'
    """
    return subject.replace(short_kernel_name(old), short_kernel_name(new))
