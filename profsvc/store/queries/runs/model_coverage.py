"""Answers of a model in a run: how many there are, and why others are missing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from profsvc.errors import NotFoundError
from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import reading
from profsvc.store.queries.launches.largest import launches_among
from profsvc.store.queries.rows import results_without_launch
from profsvc.store.schema.catalog import KINDS
from profsvc.store.schema.results.launch_results import VIEW_DEFINITIONS as RESULT_VIEWS

RUN_COLUMNS = ("run_id", "run_after")


class Coverage(NamedTuple):
    """How many subjects have rows, how many of them an answer, and the most frequent reason of the others."""

    subjects: int
    answered: int
    reason: str


def coverage(
    engine: Engine,
    view: str,
    run_id: int,
    where: Mapping[str, str],
    value: str,
    subject: str = "",
    among: Sequence[int] = (),
) -> Coverage:
    """Count the subjects of a run in a view, and those with a value; without a subject the rows.

    Of results, rows without a subject are those about the whole run and about kernels.
    With ``among`` only these launches count, where launches are the subject.
    """
    columns = KINDS[view]
    run = next(name for name in RUN_COLUMNS if name in columns)
    for name in (value, *where, *([subject] if subject else [])):
        if name not in columns:
            raise NotFoundError.near(f"column of {view}", name, columns)
    if view in RESULT_VIEWS and not subject:
        return _of_whole_run(engine, view, run_id, where, value)
    conditions = " AND ".join([f'"{run}" = :run_id', *(f'"{name}" = :{name}' for name in where)])
    found_by, numbers = f"{view} m WHERE", dict[str, int | None]()
    if among and subject == "launch_id":
        source, numbers = launches_among(engine, view, among)
        found_by = f"{source} AND"
    counted = f'DISTINCT "{subject}"' if subject else "*"
    answered = f'DISTINCT CASE WHEN "{value}" IS NOT NULL THEN "{subject}" END' if subject else f'"{value}"'
    values = {**where, **numbers, "run_id": run_id}
    query = f"SELECT count({counted}), count({answered}) FROM {found_by} {conditions}"
    why = f'SELECT reason, count(*) FROM {found_by} {conditions} AND "{value}" IS NULL AND reason IS NOT NULL'
    with reading(engine) as connection:
        subjects, known = connection.execute(text(query), values).one()
        found = None
        if known < subjects and "reason" in columns:
            order = " GROUP BY reason ORDER BY count(*) DESC, reason LIMIT 1"
            found = connection.execute(text(why + order), values).first()
    return Coverage(subjects, known, "" if found is None else str(found[0]))


def _of_whole_run(engine: Engine, view: str, run_id: int, where: Mapping[str, str], value: str) -> Coverage:
    rows = [
        row
        for row in results_without_launch(engine, view, run_id)
        if all(row[name] == asked for name, asked in where.items())
    ]
    reasons = Counter(sorted(str(row["reason"]) for row in rows if row[value] is None and row["reason"] is not None))
    answered = sum(row[value] is not None for row in rows)
    return Coverage(len(rows), answered, next((reason for reason, _ in reasons.most_common(1)), ""))
