"""Runs of a night that say they were measured before runs that reports looked at."""

from typing import Any

import pandas as pd

from profsvc.analysis.changes.series.night_values import night_dates

HISTORY = ("project", "device", "branch")


def out_of_order(runs: pd.DataFrame, zone: str) -> list[dict[str, Any]]:
    """Return the new runs of a night before that of a run that a report looked at, with that run's night.

    They stand there in their series, so a change since then is not seen as one of the newest nights. A file that was
    uploaded late belongs there, but so does every run of a host whose clock was set back. A run of before that only got
    another file is none of them. ``runs``: as `profsvc.store.nightly_runs` returns them.
    """
    rows = runs[[*HISTORY, "run", "run_id", "at", "is_new"]].to_dict("records")
    nights = night_dates(runs["at"], zone).astype(str).tolist()
    newest, last = dict[tuple[Any, ...], str](), dict[tuple[Any, ...], int]()
    histories = [tuple(None if pd.isna(row[name]) else row[name] for name in HISTORY) for row in rows]
    for row, night, history in zip(rows, nights, histories, strict=True):
        if not row["is_new"]:
            newest[history] = max(night, newest.get(history, ""))
            last[history] = max(int(row["run_id"]), last.get(history, 0))
    return [
        {"run": row["run"], "project": row["project"], "at": row["at"], "newest": newest[history]}
        for row, night, history in zip(rows, nights, histories, strict=True)
        if row["is_new"] and history in newest and row["run_id"] > last[history] and night < newest[history]
    ]
