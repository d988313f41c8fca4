"""The recordings of a run: files with timed events, and when the clock of each began in UTC."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.id_ranges import id_range
from profsvc.store.queries.rows import select

UTC, TOOL = "utc", "tool"
# Events of a file that another one represents are in none of the views.
_TIMED = "SELECT 1 FROM {} WHERE upload_id = :upload_id AND {} BETWEEN :low AND :high AND start_ns IS NOT NULL LIMIT 1"
_KEYS = {"v1_launches": "launch_id", "v1_transfers": "transfer_id", "v1_api_calls": "call_id", "v1_ranges": "range_id"}


class Recording(NamedTuple):
    """A file with timed events; times are counted from ``begin_ns`` (UTC), 0 where they are UTC already."""

    upload_id: int
    file_name: str
    begin_ns: int


def clocks(engine: Engine, run_id: int) -> tuple[dict[int, str], dict[int, int]]:
    """Return the clock of the launches and ranges of each file of a run, and where that of a profiler begins in UTC."""
    facts = {row["upload_id"]: json.loads(row["facts"] or "{}") for row in select(engine, "v1_uploads", run_id=run_id)}
    begins = {upload_id: int(said["begin_utc_ns"]) for upload_id, said in facts.items() if "begin_utc_ns" in said}
    said_of = {upload_id: str(said.get("clock", TOOL)).split()[0].lower() for upload_id, said in facts.items()}
    return said_of | dict.fromkeys(begins, UTC), begins


def recordings(engine: Engine, run_id: int) -> list[Recording] | None:
    """Return the files of a run with timed events; None if the UTC of the events of one of them is not known."""
    known, begins = clocks(engine, run_id)
    if not begins:
        return None
    found = []
    for row in select(engine, "v1_uploads", run_id=run_id):
        number = row["upload_id"]
        if not _is_timed(engine, number):
            continue
        if known[number] != UTC:
            return None
        found.append(Recording(number, str(row["file_name"]), begins.get(number, 0)))
    return found


def titles_of_recordings(found: Sequence[Recording]) -> dict[Recording, str]:
    """Return what follows the name of a lane of each: its file, with the upload where several have one name.

    >>> titles_of_recordings([Recording(1, "a.sqlite", 5), Recording(2, "a.sqlite", 7), Recording(3, "b", 0)]).values()
    dict_values([' of a.sqlite (upload 1)', ' of a.sqlite (upload 2)', ' of b'])
    >>> titles_of_recordings([Recording(1, "a.sqlite", 5)]).values()
    dict_values([''])
    """
    files = Counter(one.file_name for one in found)
    return {
        one: f" of {one.file_name}{f' (upload {one.upload_id})' * (files[one.file_name] > 1)}" * (len(found) > 1)
        for one in found
    }


def _is_timed(engine: Engine, upload_id: int) -> bool:
    low, high = id_range(upload_id)
    with reading(engine) as connection:
        return any(
            connection.execute(
                text(_TIMED.format(view, key)), {"upload_id": upload_id, "low": low, "high": high}
            ).first()
            for view, key in _KEYS.items()
        )
