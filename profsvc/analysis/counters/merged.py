"""Counters of launches that several files counted: what the best file of a launch lacks, another may have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd

SourcedCounters = tuple[pd.DataFrame, Mapping[str, np.ndarray]]
CountersBlock = tuple[pd.DataFrame, Mapping[str, np.ndarray], str, Sequence[SourcedCounters]]
"""Counters of some launches and their sources, the tool, and counters of other files that are kept beside them."""
MAX_WAITING_KINDS = 8


def best_file_per_launch(launches: pd.DataFrame, uploads: Sequence[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Part the launches that have metrics into one of each, of the best of its files, and the others.

    ``uploads``: the files, the best first. ``first_id`` is the launch that each counts for.
    """
    if len(uploads) == 1 and launches["same_as"].isna().all():  # most runs, and what follows takes milliseconds
        only = launches.assign(first_id=launches["launch_id"].astype("int64"))
        only = only.sort_values("launch_id", ignore_index=True)
        return only, only.iloc[:0]
    place = {upload_id: number for number, upload_id in enumerate(uploads)}
    first = launches["same_as"].fillna(launches["launch_id"]).astype("int64")
    rows = launches.assign(first_id=first, place=launches["upload_id"].map(place))
    rows = rows.sort_values(["place", "launch_id"], kind="stable").drop(columns="place")
    again = rows["first_id"].duplicated()
    return rows[~again].sort_values("first_id").reset_index(drop=True), rows[again].reset_index(drop=True)


def merge_counters(
    own: SourcedCounters, others: Iterable[tuple[SourcedCounters, "pd.Series[int]"]], first: "pd.Series[int]"
) -> SourcedCounters:
    """Return the counters of launches by the launch that they count for, with those of other files where one lacks.

    Each table is as `profsvc.analysis.counters.from_metrics.launch_counters` returns it. Each series holds, for
    the rows of its table, the launch they count for.
    """
    table = own[0].set_axis(pd.Index(first, name="launch_id"))
    sources = dict(own[1])
    for (other, said), counts_for in others:
        rows = table.index.get_indexer(pd.Index(counts_for))
        added: dict[str, np.ndarray] = {}
        for name in map(str, other):
            values = added[name] = np.full(len(table), np.nan)
            values[rows] = other[name].to_numpy(dtype="float64")
            here = table[name].to_numpy(dtype="float64") if name in table else np.full(len(table), np.nan)
            lacking = np.isnan(here) & ~np.isnan(values)
            added[name] = np.where(lacking, values, here)
            behind = np.full(len(table), None, dtype=object)
            behind[rows] = said.get(name)
            sources[name] = np.where(lacking, behind, sources.get(name, np.full(len(table), None, dtype=object)))
        table = pd.DataFrame({str(name): table[name] for name in table} | added, index=table.index)
    return table, sources


def unmerged_counters(counted: Iterable[SourcedCounters], first: "pd.Series[int]") -> list[SourcedCounters]:
    """Return the counters of launches as their own files have them, without those that `merge_counters` stands for."""
    kept: list[SourcedCounters] = []
    for table, sources in counted:
        own = ~table.index.isin(first)
        if own.any():
            kept.append((table[own], {name: np.asarray(behind)[own] for name, behind in sources.items()}))
    return kept


def joined_blocks(blocks: Iterable[CountersBlock], launches: int) -> Iterator[CountersBlock]:
    """Yield the blocks of small files put under each other, so that each has at least so many launches where it can.

    Only blocks of one tool with the same counters are joined: a launch gets the results that its own file gives it.
    """
    waiting: dict[tuple[str, tuple[str, ...]], list[CountersBlock]] = {}
    for block in blocks:
        key = block[2], tuple(map(str, block[0]))
        waiting.setdefault(key, []).append(block)
        if sum(len(part[0]) for part in waiting[key]) >= launches:
            yield _joined(waiting.pop(key))
        elif len(waiting) > MAX_WAITING_KINDS:
            yield _joined(waiting.pop(next(iter(waiting))))
    yield from map(_joined, waiting.values())


def _joined(blocks: Sequence[CountersBlock]) -> CountersBlock:
    if len(blocks) == 1:
        return blocks[0]
    parts, sources, tools, kept = zip(*blocks, strict=True)
    names = dict.fromkeys(name for part in sources for name in part)
    behind = {
        name: np.concatenate(
            [own.get(name, np.full(len(part), None, dtype=object)) for part, own in zip(parts, sources, strict=True)]
        )
        for name in names
    }
    return pd.concat(parts), behind, tools[0], list(chain.from_iterable(kept))
