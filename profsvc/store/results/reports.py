"""Nightly reports and their deliveries."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.errors import NotFoundError
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.timestamps import now
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.inserts.row_insert import insert_row
from profsvc.store.results.findings import StateChange, write_findings, write_state
from profsvc.store.results.renames import write_renames
from profsvc.store.service.schedules import Slot, write_slot

REPORT_COUNTS = (
    "newest_upload_id", "newest_refusal_id", "runs", "series", "findings_new", "findings_open", "reruns_wanted",
    "uploads_failed", "one_line",
)  # fmt: skip


_LATER = """
    SELECT report_id, project, night FROM reports
    WHERE night > :night AND night <= :today AND (project = '' OR :project IN ('', project)) ORDER BY night DESC LIMIT 1
"""


_SAME = "SELECT report_id, document FROM reports WHERE project = :project AND night = :night"


_EARLIER = """
    SELECT report_id, night, newest_upload_id, newest_refusal_id, document FROM reports
    WHERE project = :project AND night < :night ORDER BY night DESC LIMIT 1
"""


class AdjacentReports(NamedTuple):
    """Reports beside that of a night, as they are stored."""

    before: dict[str, Any] | None  # the newest of the same scope of a night before
    same: dict[str, Any] | None  # that of this night
    later: dict[str, Any] | None  # one of a later night on the same runs
    today: str


class OutdatedReportError(Exception):
    """Another report was stored while this one was made, which may have looked at more."""


class NightlyRecord(NamedTuple):
    """What is kept of a night: new findings, moved ones, when open ones were seen last, and renamed kernels."""

    project: str
    night: str
    zone: str
    findings: Sequence[Mapping[str, Any]]
    moves: Sequence[StateChange]
    seen: Mapping[int, str]
    renames: Sequence[tuple[Any, ...]] = ()  # of `RENAME_COLUMNS`
    adjacent: AdjacentReports | None = None  # when it was begun


def adjacent_reports(engine: Engine, project: str, night: str, today: str) -> AdjacentReports:
    """Return the reports beside that of a night; an empty project is all of them.

    One of a night after today was made while the clock stood in the future, and is no later one.
    """
    with reading(engine) as connection:
        return _adjacent_reports(connection, project, night, today)


def _adjacent_reports(connection: Connection, project: str, night: str, today: str) -> AdjacentReports:
    asked = {"project": project, "night": night, "today": today}
    rows = [connection.execute(text(query), asked).mappings().first() for query in (_EARLIER, _SAME, _LATER)]
    before, same, later = (None if row is None else dict(row) for row in rows)
    return AdjacentReports(before, same, later, today)


def save_report(
    engine: Engine, night: NightlyRecord, compose: Callable[[int, Sequence[int]], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Keep a night in one transaction, in place of what was kept of it; return its document.

    ``compose`` makes the document once the number of the report and those of its findings are known; of the columns
    `REPORT_COUNTS` it has a value each under ``counts``. Raise `OutdatedReportError`, and keep nothing, where the
    reports beside it are not those of when it was begun.
    """
    with writing(engine) as connection:
        if connection.dialect.name == "postgresql":  # one after the other; on SQLite writers queue anyway
            connection.exec_driver_sql("LOCK TABLE reports IN SHARE ROW EXCLUSIVE MODE")
        begun = night.adjacent
        if begun and begun != _adjacent_reports(connection, night.project, night.night, begun.today):
            raise OutdatedReportError
        report_id = _report_id(connection, night)
        numbers = write_findings(connection, report_id, night.night, night.findings, night.seen)
        connection.execute(text("DELETE FROM finding_states WHERE report_id = :r"), {"r": report_id})
        for move in night.moves:
            write_state(connection, move.finding_id, move.state, move.because, move.said_at, report_id=report_id)
        write_renames(connection, report_id, night.renames)
        for finding_id, seen_at in night.seen.items():
            query = text("UPDATE findings SET seen_at = :seen_at WHERE finding_id = :finding_id")
            connection.execute(query, {"seen_at": seen_at, "finding_id": finding_id})
        document = compose(report_id, numbers)
        _write(connection, report_id, night.zone, document)
    return document


def _report_id(connection: Connection, night: NightlyRecord) -> int:
    """Return the number of the night's report, with an empty row where it is new."""
    query = text("SELECT report_id FROM reports WHERE project = :project AND night = :night")
    found = connection.execute(query, {"project": night.project, "night": night.night}).scalar()
    if found is not None:
        return int(found)
    row: dict[str, Any] = dict.fromkeys(REPORT_COUNTS, 0) | {"one_line": "", "document": "", "made_at": now()}
    row |= {"project": night.project, "night": night.night, "zone": night.zone}
    return insert_row(connection, "reports", "report_id", row)


def _write(connection: Connection, report_id: int, zone: str, document: Mapping[str, Any]) -> None:
    """Write the report; one that says the same as before keeps its time."""
    whole = json.dumps(document, ensure_ascii=False, sort_keys=True)
    row = {name: document["counts"][name] for name in REPORT_COUNTS}
    row |= {"zone": zone, "made_at": now(), "document": whole}
    assigned = ", ".join(f"{name} = :{name}" for name in row)
    query = text(f"UPDATE reports SET {assigned} WHERE report_id = :r AND document <> :document")
    connection.execute(query, row | {"r": report_id})


def report_contents(engine: Engine, report_id: int) -> dict[str, Any]:
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
            "DELETE FROM kernel_renames WHERE report_id = :r",
            "DELETE FROM deliveries WHERE report_id = :r",
            "DELETE FROM reports WHERE report_id = :r",
        ):
            connection.execute(text(query), {"r": report_id})


_INSERT_DELIVERY = text(
    "INSERT INTO deliveries (report_id, channel, kind, delivered, message, sent_by, sent_at)"
    " VALUES (:report_id, :channel, :kind, :delivered, :message, :sent_by, :sent_at)"
)


class Delivery(NamedTuple):
    """A report and a channel: whether it was delivered, what to know of it, who sent it, and when (UTC)."""

    report_id: int
    channel: str
    kind: str
    delivered: bool
    message: str | None
    sent_by: str
    sent_at: str


def save_delivery(engine: Engine, delivery: Delivery) -> None:
    """Store the outcome of a delivery to a channel."""
    with writing(engine) as connection:
        _write_delivery(connection, delivery)


def save_slot_deliveries(engine: Engine, slot: Slot, deliveries: Mapping[str, str], newest: Delivery) -> bool:
    """Keep the newest delivery, and what each channel of the slot made of it, in one transaction: who takes the slot
    over sees both or neither. Tell whether the slot is still the owner's.
    """
    with writing(engine) as connection:
        _write_delivery(connection, newest)
        said = json.dumps(deliveries, sort_keys=True)
        return write_slot(connection, slot, "deliveries = :said", {"said": said})


def _write_delivery(connection: Connection, delivery: Delivery) -> None:
    connection.execute(_INSERT_DELIVERY, delivery._asdict() | {"delivered": int(delivery.delivered)})
