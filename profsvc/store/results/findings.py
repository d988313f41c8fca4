"""Findings of nightly reports, and their states.

A second report of the same night replaces the first. The findings and state changes of the first are reverted, so that
findings keep their numbers and the states that people set.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError, UsageError
from profsvc.store.connection.sql import Connection, Engine, bindparam, dicts_of, text
from profsvc.store.connection.timestamps import now
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.inserts.row_insert import insert_row, insert_rows, reject_nul
from profsvc.store.queries.rows import select

MANUAL_STATES = ("accepted", "fixed", "new")
"""States that people set; ``new`` reopens a finding, so that nightly checks decide again."""
MAX_REASON_CHARS = 2000
FINDING_COLUMNS = (
    "series", "project", "kernel", "subject", "device", "branch", "sensor", "quantity", "kind", "unit", "worse",
    "before", "after", "raw_before", "raw_after", "p", "adjusted_p", "noise", "reference_temperature_c",
    "points_before", "points_after", "run_before_id", "run_id", "changed_at", "found_at", "seen_at",
)  # fmt: skip
DIFFERENCE_COLUMNS = (
    "fact", "part", "title", "unit", "kernel", "before", "after", "before_text", "after_text", "change",
)  # fmt: skip
# Words of this night's own report, and of later ones, do not count.
_FINDINGS = """
    SELECT f.*, s.state, s.said_at FROM findings f JOIN reports n ON n.report_id = f.report_id
    LEFT JOIN finding_states s ON s.finding_id = f.finding_id AND s.item = (
      SELECT max(o.item) FROM finding_states o LEFT JOIN reports m ON m.report_id = o.report_id
      WHERE o.finding_id = f.finding_id
        AND (o.report_id IS NULL OR (m.night <= :night AND NOT (m.night = :night AND m.project = :project))))
    WHERE {of} ORDER BY f.changed_at, f.finding_id
"""
_KNOWN = _FINDINGS.format(
    of="n.night <= :night AND NOT (n.night = :night AND n.project = :project) AND :project IN ('', f.project)"
)
_OF_NIGHT = _FINDINGS.format(of="n.night = :night AND n.project = :project")


# Of findings of these runs the newest word.
_STORED_STATES = """
    SELECT f.series, f.run_id, s.state FROM findings f JOIN finding_states s ON s.finding_id = f.finding_id
      AND s.item = (SELECT max(o.item) FROM finding_states o WHERE o.finding_id = f.finding_id)
    WHERE f.run_id IN :runs
"""


# Runs that were deleted, that findings name, and whose files were uploaded again into a run of the same name.
_UPLOADED_AGAIN = """
    SELECT d.run_id AS deleted, min(r.run_id) AS again FROM deleted_uploads d
    JOIN uploads u ON u.sha256 = d.sha256
    JOIN runs r ON r.run_id = u.run_id AND r.project = d.project AND r.name = d.run
    WHERE d.run_id IN (SELECT run_id FROM findings UNION SELECT run_before_id FROM findings)
      AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.run_id = d.run_id)
    GROUP BY d.run_id
"""
_FOLLOW = (
    """
    UPDATE findings SET run_id = :again WHERE run_id = :deleted
      AND NOT EXISTS (SELECT 1 FROM findings o WHERE o.series = findings.series AND o.run_id = :again)
    """,
    "UPDATE findings SET run_before_id = :again WHERE run_before_id = :deleted",
)


class StateChange(NamedTuple):
    """A state that a night gives a finding, and why; ``said_at`` is the time of the newest run that it looked at."""

    finding_id: int
    state: str
    because: str
    said_at: str


def known_findings(engine: Engine, project: str, night: str) -> list[dict[str, Any]]:
    """Return what was found before this night's report of this scope, with the states they had then."""
    return _findings(engine, _KNOWN, project, night)


def findings_of_night(engine: Engine, project: str, night: str) -> list[dict[str, Any]]:
    """Return what this night's report of this scope found, with the states that people gave."""
    return _findings(engine, _OF_NIGHT, project, night)


def _findings(engine: Engine, query: str, project: str, night: str) -> list[dict[str, Any]]:
    with reading(engine) as connection:
        rows = connection.execute(text(query), {"project": project, "night": night}).mappings()
        return [dict(row) | {"state": row["state"] or "new"} for row in rows]


def stored_states(engine: Engine, run_ids: Collection[int]) -> dict[tuple[str, int], str]:
    """Return the states of findings that somebody or a night said a word on, by series and first run."""
    query = text(_STORED_STATES).bindparams(bindparam("runs", expanding=True))
    with reading(engine) as connection:
        rows = connection.execute(query, {"runs": list(run_ids)})
        return {(str(row.series), int(row.run_id)): str(row.state) for row in rows}


def follow_repeated_uploads(engine: Engine) -> None:
    """Let findings of a run that was deleted name the run into which its files were uploaded again."""
    with reading(engine) as connection:
        found = dicts_of(connection.execute(text(_UPLOADED_AGAIN)))
    if found:
        with writing(engine) as connection:
            for row in found:
                for query in _FOLLOW:
                    connection.execute(text(query), row)


def write_findings(
    connection: Connection, report_id: int, night: str, findings: Sequence[Mapping[str, Any]],
    kept: Collection[int] = (),
) -> list[int]:  # fmt: skip
    """Write what was found and return the numbers; a finding that was made before keeps its own.

    What this report found before and no longer does goes, unless it is ``kept`` or somebody said a word on it. What a
    later night found too, whose report was made while the clock stood in the future, is this night's.
    """
    numbers = []
    for finding in findings:
        row = {name: finding[name] for name in FINDING_COLUMNS}
        reject_nul([value for value in row.values() if isinstance(value, str)])
        query = text("SELECT finding_id FROM findings WHERE series = :series AND run_id = :run_id")
        same = connection.execute(query, {"series": row["series"], "run_id": row["run_id"]}).scalar()
        if same is None:
            numbers.append(insert_row(connection, "findings", "finding_id", row | {"report_id": report_id}))
            _write_differences(connection, numbers[-1], finding.get("differences", ()))
            continue
        assigned = ", ".join(f"{name} = :{name}" for name in row)
        connection.execute(text(f"UPDATE findings SET {assigned} WHERE finding_id = :own"), row | {"own": same})
        taken = text(
            "UPDATE findings SET report_id = :r WHERE finding_id = :own"
            " AND report_id IN (SELECT report_id FROM reports WHERE night > :night)"
        )
        connection.execute(taken, {"r": report_id, "own": same, "night": night})
        numbers.append(int(same))
        _write_differences(connection, int(same), finding.get("differences", ()))
    held = text("SELECT finding_id FROM findings WHERE report_id = :r")
    for old in set(connection.execute(held, {"r": report_id}).scalars()) - {*numbers, *kept}:
        query = text(
            "DELETE FROM findings WHERE finding_id = :old AND NOT EXISTS"
            " (SELECT 1 FROM finding_states s WHERE s.finding_id = :old AND s.report_id IS NULL)"
        )
        connection.execute(query, {"old": old})
    return numbers


def _write_differences(connection: Connection, finding_id: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write what else changed with a finding, in place of what is stored of it."""
    connection.execute(text("DELETE FROM finding_differences WHERE finding_id = :own"), {"own": finding_id})
    values = [
        (finding_id, item, *(_without_nul(row[name]) for name in DIFFERENCE_COLUMNS))
        for item, row in enumerate(rows, 1)
    ]
    if values:
        insert_rows(connection, "finding_differences", ["finding_id", "item", *DIFFERENCE_COLUMNS], values)


def _without_nul(value: Any) -> Any:
    return value.replace("\0", "\\x00") if isinstance(value, str) else value


def differences_of_findings(engine: Engine, finding_ids: Collection[int]) -> dict[int, list[dict[str, Any]]]:
    """Return what else changed with findings, in the order of their table, by finding."""
    query = text(
        f"SELECT finding_id, {', '.join(DIFFERENCE_COLUMNS)} FROM finding_differences WHERE finding_id IN :own"
        " ORDER BY finding_id, item"
    ).bindparams(bindparam("own", expanding=True))
    found: dict[int, list[dict[str, Any]]] = {}
    with reading(engine) as connection:
        for row in connection.execute(query, {"own": list(finding_ids)}).mappings():
            found.setdefault(int(row["finding_id"]), []).append({name: row[name] for name in DIFFERENCE_COLUMNS})
    return found


def set_finding(engine: Engine, finding_id: int, state: str, because: str, by: str) -> dict[str, Any]:
    """Set the state of a finding, for somebody and a reason; return its row of ``v1_findings``."""
    if state not in MANUAL_STATES:
        raise UsageError(f"{state!r} cannot be set; set one of {', '.join(MANUAL_STATES)}")
    if not because.strip() or len(because) > MAX_REASON_CHARS:
        raise UsageError(f"say why, in up to {MAX_REASON_CHARS} characters, such as: the new driver, ticket 17")
    reject_nul([because, by])
    with writing(engine) as connection:
        lock = " FOR UPDATE" if connection.dialect.name == "postgresql" else ""
        query = text(f"SELECT 1 FROM findings WHERE finding_id = :finding_id{lock}")
        if connection.execute(query, {"finding_id": finding_id}).first() is None:
            raise NotFoundError(f"no finding has the number {finding_id}; profsvc findings list shows those there are")
        write_state(connection, finding_id, state, because.strip(), now(), by=by)
    return select(engine, "v1_findings", finding_id=finding_id)[0]


def write_state(
    connection: Connection, finding_id: int, state: str, because: str, said_at: str, *, by: str | None = None,
    report_id: int | None = None,
) -> None:  # fmt: skip
    """Append a state to the history of a finding; ``by`` is the person, ``report_id`` the report that set it."""
    query = text(
        "INSERT INTO finding_states (finding_id, item, state, report_id, said_by, because, said_at)"
        " SELECT :finding_id, coalesce(max(item), 0) + 1, :state, CAST(:report_id AS BIGINT), CAST(:by AS TEXT),"
        " :because, :said_at FROM finding_states WHERE finding_id = :finding_id"
    )
    row = {"finding_id": finding_id, "state": state, "report_id": report_id, "by": by, "because": because}
    connection.execute(query, row | {"said_at": said_at})


def state_history(engine: Engine, finding_id: int) -> list[dict[str, Any]]:
    """Return the status history of a finding, oldest first: state, report_id, said_by, because, said_at."""
    query = text(
        "SELECT state, report_id, said_by, because, said_at FROM finding_states"
        " WHERE finding_id = :finding_id ORDER BY item"
    )
    with reading(engine) as connection:
        return dicts_of(connection.execute(query, {"finding_id": finding_id}))


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
        return dicts_of(connection.execute(query, {"series": series}))
