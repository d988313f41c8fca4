"""The points of a kernel in runs that have it under another name."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.store.queries.kernels.history import HistoryFilter

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from profsvc.analysis.changes.kernels.renames import KnownRenames

Row = dict[str, Any]
Page = tuple[list[Row], int | None]
"""Points, and the run where older ones begin, None if there are none."""


def with_other_names(
    engine: "Engine", subject: Row, asked: HistoryFilter, gather: Callable[[Row], Page]
) -> tuple[list[Row], int | None, list[str]]:
    """Return the points of a kernel under all its names, where older ones begin, and these names, its own first.

    ``gather`` returns the page of a kernel. Two names are one kernel as in nightly
    reports: a report or a person linked them, no person refused it, and no run among the points has both.
    """
    kernel, own = str(subject["kernel"]), gather(subject)
    if not store.any_renames(engine):  # most stores have none, and pandas takes long to load
        return *own, [kernel]
    from profsvc.analysis.changes.kernels.renames import connected_names
    from profsvc.pipeline.nightly.report import known_renames

    known = known_renames(engine, asked.project or "")
    pages = {kernel: own}
    pairs = [(one.kernel_before, one.kernel) for part in (known.found, known.decisions) for one in part]
    for name in connected_names(kernel, pairs) - {kernel}:
        found = store.kernels_named(engine, name, asked.project)
        if found and found[0]["kernel"] == name:  # else its runs were deleted, and the name is a short one of others
            pages[name] = gather(found[0])
    points = _of_one_kernel({name: page[0] for name, page in pages.items()}, kernel, known)
    names = [kernel, *sorted({name for name, _ in points} - {kernel})]
    begin = max((older for name in names if (older := pages[name][1]) is not None), default=None)
    runs = sorted({point["run_id"] for _, point in points if begin is None or point["run_id"] >= begin}, reverse=True)
    if len(runs) > asked.points:
        begin = runs[asked.points - 1]
    return [point for _, point in points if begin is None or point["run_id"] >= begin], begin, names


def _of_one_kernel(
    points: Mapping[str, Iterable[Row]], kernel: str, known: "KnownRenames"
) -> list[tuple[str, Row]]:  # fmt: skip
    """Return the points that are of the series of a kernel, each with its name."""
    import pandas as pd

    from profsvc.analysis.changes.kernels.renames import HISTORY, kernel_names

    listed = [(name, point) for name, own in points.items() for point in own]
    rows = [{"kernel": name, "run_id": point["run_id"], "at": point["at"]} | {of: point[of] for of in HISTORY}
            for name, point in listed]  # fmt: skip
    table = pd.DataFrame(rows, columns=["kernel", "run_id", "at", *HISTORY])
    runs = table[["run_id", "at"]].drop_duplicates("run_id").sort_values(["at", "run_id"], ignore_index=True)
    names = kernel_names(known, table, runs)
    return [one for one, row in zip(listed, rows, strict=True) if kernel in names.of(row).all]
