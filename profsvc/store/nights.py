"""Reports of nights and what was found in them: kept, looked up, and the states of findings.

The same night again replaces its report: what that report had found and moved is taken back first, so that findings
keep their numbers and what people said of them stays.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, bindparam, text

from profsvc.errors import NotFoundError, UsageError
from profsvc.store.belonging import now
from profsvc.store.engine import reading, writing
from profsvc.store.names import refuse_nul
from profsvc.store.read import select

BY_PEOPLE = ("accepted", "fixed", "new")
"""States that people set; ``new`` takes back what was set, and the nights decide again."""
MOST_REFUSALS = 10_000
LONGEST_MESSAGE = 2000
FINDING = (
    "series", "project", "kernel", "subject", "device", "sensor", "quantity", "kind", "unit", "worse", "before",
    "after", "raw_before", "raw_after", "p", "adjusted_p", "noise", "reference_temperature_c", "points_before",
    "points_after", "run_before_id", "run_id", "changed_at", "found_at", "seen_at",
)  # fmt: skip
REPORT = (
    "newest_upload_id", "newest_refusal_id", "runs", "series", "findings_new", "findings_open", "reruns_wanted",
    "uploads_failed", "one_line",
)  # fmt: skip
_LATER = """
    SELECT report_id, project, night FROM reports
    WHERE night > :night AND night <= :today AND (project = '' OR :project IN ('', project)) ORDER BY night DESC LIMIT 1
"""
_EARLIER = """
    SELECT report_id, night, newest_upload_id, newest_refusal_id FROM reports
    WHERE project = :project AND night < :night ORDER BY night DESC LIMIT 1
"""
# Words of this night's own report, and of later ones, do not count.
_KNOWN = """
    SELECT f.*, s.state, s.said_at FROM findings f JOIN reports n ON n.report_id = f.report_id
    LEFT JOIN finding_states s ON s.finding_id = f.finding_id AND s.item = (
      SELECT max(o.item) FROM finding_states o LEFT JOIN reports m ON m.report_id = o.report_id
      WHERE o.finding_id = f.finding_id
        AND (o.report_id IS NULL OR (m.night <= :night AND NOT (m.night = :night AND m.project = :project))))
    WHERE n.night <= :night AND NOT (n.night = :night AND n.project = :project) AND :project IN ('', f.project)
    ORDER BY f.changed_at, f.finding_id
"""


# Of findings of these runs the newest word.
_SAID = """
    SELECT f.series, f.run_id, s.state FROM findings f JOIN finding_states s ON s.finding_id = f.finding_id
      AND s.item = (SELECT max(o.item) FROM finding_states o WHERE o.finding_id = f.finding_id)
    WHERE f.run_id IN :runs
"""


class Move(NamedTuple):
    """A state that a night gives a finding, and why; ``said_at`` is the time of the newest run that it looked at."""

    finding_id: int
    state: str
    because: str
    said_at: str


class Night(NamedTuple):
    """What is kept of a night: new findings, moved ones, and when those that are open were seen last."""

    project: str
    night: str
    zone: str
    findings: Sequence[Mapping[str, Any]]
    moves: Sequence[Move]
    seen: Mapping[int, str]


def later_report(engine: Engine, project: str, night: str, today: str) -> dict[str, Any] | None:
    """Return a report of a later night on the same runs, where there is one; an empty project is all of them.

    One of a night after today was made while the clock stood in the future, and is none.
    """
    asked = {"project": project, "night": night, "today": today}
    with reading(engine) as connection:
        row = connection.execute(text(_LATER), asked).mappings().first()
    return None if row is None else dict(row)


def report_before(engine: Engine, project: str, night: str) -> dict[str, Any] | None:
    """Return the newest report of the same scope on a night before; None for the first."""
    with reading(engine) as connection:
        row = connection.execute(text(_EARLIER), {"project": project, "night": night}).mappings().first()
    return None if row is None else dict(row)


def known_findings(engine: Engine, project: str, night: str) -> list[dict[str, Any]]:
    """Return what was found before this night's report of this scope, with the states they had then."""
    with reading(engine) as connection:
        rows = connection.execute(text(_KNOWN), {"project": project, "night": night}).mappings()
        return [dict(row) | {"state": row["state"] or "new"} for row in rows]


def states_said(engine: Engine, run_ids: Collection[int]) -> dict[tuple[str, int], str]:
    """Return the states of findings that somebody or a night said a word on, by series and first run."""
    query = text(_SAID).bindparams(bindparam("runs", expanding=True))
    with reading(engine) as connection:
        rows = connection.execute(query, {"runs": list(run_ids)})
        return {(str(row.series), int(row.run_id)): str(row.state) for row in rows}


def keep_night(
    engine: Engine, night: Night, compose: Callable[[int, Sequence[int]], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Keep a night in one transaction, in place of what was kept of it; return its document.

    ``compose`` makes the document once the number of the report and those of its findings are known; of the columns
    `REPORT` it has a value each under ``counts``.
    """
    with writing(engine) as connection:
        if connection.dialect.name == "postgresql":  # one after the other; on SQLite writers queue anyway
            connection.exec_driver_sql("LOCK TABLE reports IN SHARE ROW EXCLUSIVE MODE")
        report_id = _report_id(connection, night)
        numbers = _keep_findings(connection, report_id, night)
        connection.execute(text("DELETE FROM finding_states WHERE report_id = :r"), {"r": report_id})
        for move in night.moves:
            _say(connection, move.finding_id, move.state, move.because, move.said_at, report_id=report_id)
        for finding_id, seen_at in night.seen.items():
            query = text("UPDATE findings SET seen_at = :seen_at WHERE finding_id = :finding_id")
            connection.execute(query, {"seen_at": seen_at, "finding_id": finding_id})
        document = compose(report_id, numbers)
        _write(connection, report_id, night.zone, document)
    return document


def _report_id(connection: Connection, night: Night) -> int:
    """Return the number of the night's report, with an empty row where it is new."""
    query = text("SELECT report_id FROM reports WHERE project = :project AND night = :night")
    found = connection.execute(query, {"project": night.project, "night": night.night}).scalar()
    if found is not None:
        return int(found)
    row: dict[str, Any] = dict.fromkeys(REPORT, 0) | {"one_line": "", "document": "", "made_at": now()}
    row |= {"project": night.project, "night": night.night, "zone": night.zone}
    return _inserted(connection, "reports", "report_id", row)


def _inserted(connection: Connection, table: str, key: str, row: Mapping[str, Any]) -> int:
    columns = ", ".join(row)
    places = ", ".join(f":{name}" for name in row)
    query = text(f"INSERT INTO {table} ({columns}) VALUES ({places}) RETURNING {key}")
    return int(connection.execute(query, dict(row)).scalar_one())


def _keep_findings(connection: Connection, report_id: int, night: Night) -> list[int]:
    """Write what was found and return the numbers; a finding that was made before keeps its own.

    What this report found before and no longer does goes, unless somebody said a word on it. What a later night found
    too, whose report was made while the clock stood in the future, is this night's.
    """
    numbers = []
    for finding in night.findings:
        row = {name: finding[name] for name in FINDING}
        refuse_nul([value for value in row.values() if isinstance(value, str)])
        query = text("SELECT finding_id FROM findings WHERE series = :series AND run_id = :run_id")
        same = connection.execute(query, {"series": row["series"], "run_id": row["run_id"]}).scalar()
        if same is None:
            numbers.append(_inserted(connection, "findings", "finding_id", row | {"report_id": report_id}))
            continue
        assigned = ", ".join(f"{name} = :{name}" for name in row)
        connection.execute(text(f"UPDATE findings SET {assigned} WHERE finding_id = :own"), row | {"own": same})
        taken = text(
            "UPDATE findings SET report_id = :r WHERE finding_id = :own"
            " AND report_id IN (SELECT report_id FROM reports WHERE night > :night)"
        )
        connection.execute(taken, {"r": report_id, "own": same, "night": night.night})
        numbers.append(int(same))
    held = text("SELECT finding_id FROM findings WHERE report_id = :r")
    for old in set(connection.execute(held, {"r": report_id}).scalars()) - set(numbers):
        query = text(
            "DELETE FROM findings WHERE finding_id = :old AND NOT EXISTS"
            " (SELECT 1 FROM finding_states s WHERE s.finding_id = :old AND s.report_id IS NULL)"
        )
        connection.execute(query, {"old": old})
    return numbers


def _write(connection: Connection, report_id: int, zone: str, document: Mapping[str, Any]) -> None:
    """Write the report; one that says the same as before keeps its time."""
    whole = json.dumps(document, ensure_ascii=False, sort_keys=True)
    row = {name: document["counts"][name] for name in REPORT}
    row |= {"zone": zone, "made_at": now(), "document": whole}
    assigned = ", ".join(f"{name} = :{name}" for name in row)
    query = text(f"UPDATE reports SET {assigned} WHERE report_id = :r AND document <> :document")
    connection.execute(query, row | {"r": report_id})


def held_by_report(engine: Engine, report_id: int) -> dict[str, Any]:
    """Return what goes with a report: its row of ``reports``, and how many findings, moves and sendings it holds.

    ``said`` counts the findings that somebody said a word on.
    """
    queries = {
        "findings": "SELECT count(*) FROM findings WHERE report_id = :r",
        "said": "SELECT count(DISTINCT f.finding_id) FROM findings f JOIN finding_states s"
        " ON s.finding_id = f.finding_id AND s.report_id IS NULL WHERE f.report_id = :r",
        "moves": "SELECT count(*) FROM finding_states WHERE report_id = :r",
        "deliveries": "SELECT count(*) FROM deliveries WHERE report_id = :r",
    }
    with reading(engine) as connection:
        query = text("SELECT report_id, project, night, one_line FROM reports WHERE report_id = :r")
        row = connection.execute(query, {"r": report_id}).mappings().first()
        if row is None:
            raise NotFoundError(f"no report has the number {report_id}; profsvc report nightly --list shows them")
        counts = {name: int(connection.execute(text(one), {"r": report_id}).scalar_one())
                  for name, one in queries.items()}  # fmt: skip
    return dict(row) | counts


def delete_report(engine: Engine, report_id: int) -> None:
    """Remove a report of a night with what it found and moved; the next report looks at its runs again.

    What later nights, or people, said of its findings goes with them.
    """
    own = "SELECT finding_id FROM findings WHERE report_id = :r"
    with writing(engine) as connection:
        for query in (
            "DELETE FROM finding_states WHERE report_id = :r",
            f"DELETE FROM finding_states WHERE finding_id IN ({own})",
            "DELETE FROM findings WHERE report_id = :r",
            "DELETE FROM deliveries WHERE report_id = :r",
            "DELETE FROM reports WHERE report_id = :r",
        ):
            connection.execute(text(query), {"r": report_id})


def set_finding(engine: Engine, finding_id: int, state: str, because: str, by: str) -> dict[str, Any]:
    """Set the state of a finding, for somebody and a reason; return its row of ``v1_findings``."""
    if state not in BY_PEOPLE:
        raise UsageError(f"{state!r} cannot be set; set one of {', '.join(BY_PEOPLE)}")
    if not because.strip() or len(because) > LONGEST_MESSAGE:
        raise UsageError(f"say why, in up to {LONGEST_MESSAGE} characters, such as: the new driver, ticket 17")
    refuse_nul([because, by])
    with writing(engine) as connection:
        lock = " FOR UPDATE" if connection.dialect.name == "postgresql" else ""
        query = text(f"SELECT 1 FROM findings WHERE finding_id = :finding_id{lock}")
        if connection.execute(query, {"finding_id": finding_id}).first() is None:
            raise NotFoundError(f"no finding has the number {finding_id}; profsvc findings list shows those there are")
        _say(connection, finding_id, state, because.strip(), now(), by=by)
    return select(engine, "v1_findings", finding_id=finding_id)[0]


def _say(
    connection: Connection, finding_id: int, state: str, because: str, said_at: str, *, by: str | None = None,
    report_id: int | None = None,
) -> None:  # fmt: skip
    query = text(
        "INSERT INTO finding_states (finding_id, item, state, report_id, said_by, because, said_at)"
        " SELECT :finding_id, coalesce(max(item), 0) + 1, :state, CAST(:report_id AS BIGINT), CAST(:by AS TEXT),"
        " :because, :said_at FROM finding_states WHERE finding_id = :finding_id"
    )
    row = {"finding_id": finding_id, "state": state, "report_id": report_id, "by": by, "because": because}
    connection.execute(query, row | {"said_at": said_at})


def states_of(engine: Engine, finding_id: int) -> list[dict[str, Any]]:
    """Return what was said of a finding, oldest first: state, report_id, said_by, because, said_at."""
    query = text(
        "SELECT state, report_id, said_by, because, said_at FROM finding_states"
        " WHERE finding_id = :finding_id ORDER BY item"
    )
    with reading(engine) as connection:
        return [dict(row) for row in connection.execute(query, {"finding_id": finding_id}).mappings()]


def series_of_finding(engine: Engine, finding_id: int) -> str:
    """Return the digest of the series that a finding is of."""
    with reading(engine) as connection:
        query = text("SELECT series FROM findings WHERE finding_id = :finding_id")
        return str(connection.execute(query, {"finding_id": finding_id}).scalar_one())


def findings_of_series(engine: Engine, series: str) -> list[dict[str, Any]]:
    """Return the findings of a series, rows of ``v1_findings``, the oldest change first."""
    query = text(
        "SELECT * FROM v1_findings WHERE finding_id IN (SELECT finding_id FROM findings WHERE series = :series)"
        " ORDER BY changed_at, finding_id"
    )
    with reading(engine) as connection:
        return [dict(row) for row in connection.execute(query, {"series": series}).mappings()]


def _plain(words: str) -> str:
    """Return words as both databases take them: no NUL, no half of a character.

    >>> _plain("a\\0b")
    'a\\\\x00b'
    """
    return words.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def note_refusal(engine: Engine, project: str, run: str | None, file_name: str, sha256: str, error: Exception) -> None:
    """Write down that a file was refused, and why; of very many only the newest are kept."""
    code = getattr(type(error), "code", lambda: "error")()
    row = {"project": project, "run": run, "file_name": file_name, "sha256": sha256, "code": code}
    row |= {"message": str(error)[:LONGEST_MESSAGE], "refused_at": now()}
    row = {name: _plain(value) if isinstance(value, str) else value for name, value in row.items()}
    with writing(engine) as connection:
        number = _inserted(connection, "refusals", "refusal_id", row)
        query = text("DELETE FROM refusals WHERE refusal_id <= :old")
        connection.execute(query, {"old": number - MOST_REFUSALS})
