"""Merge launches that several files of a run contain into one launch with several sources.

If all launches of a file are in another, ``uploads.same_as`` names that file, and ``twins`` maps the launches. The file
with all launches represents them with its times. Among files with the same launches a trace comes before a profile,
whose times are disturbed by counting, a trace with whole names of kernels before one with short names, then the file
with most metrics, then the oldest. The choice does not depend on the order of uploads and deletions.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import insert

from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import lock_existing_row, reading, writing
from profsvc.store.ingest.duplicates.repeated_captures import reject_duplicate_capture
from profsvc.store.ingest.duplicates.report_pages import (
    LaunchFile,
    files_with_same_start,
    numbered_launches,
    same_report,
)
from profsvc.store.ingest.duplicates.same_execution import Kernels, same_execution
from profsvc.store.ingest.outdated_results import OF_TWINS, forget_results
from profsvc.store.ingest.runs import count_change
from profsvc.store.ingest.source_launches import join_source_pages
from profsvc.store.schema.column_types import IDS_PER_UPLOAD, REPEATED_BITS
from profsvc.store.schema.tables import metadata

# Data that one file per execution counts for, with the key of its rows; metrics are checked one by one.
EVENTS = {"transfers": "transfer_id", "api_calls": "call_id", "ranges": "range_id", "kernel_summaries": "summary_id"}
EVENTS |= {"rules": "launch_id"}
ROWS_PER_INSERT = 50_000

_FILES = text(f"""
    SELECT u.upload_id, u.file_name, u.format, u.launches,
           (SELECT count(l.start_ns) FROM launches l WHERE l.launch_id = u.upload_id * {IDS_PER_UPLOAD} + 1) AS timed,
           (SELECT count(*) FROM metrics m WHERE m.launch_ref = u.upload_id * {IDS_PER_UPLOAD} + 1)
           + coalesce((SELECT count(*) FROM wide_columns c WHERE c.layout_id =
               (SELECT b.layout_id FROM wide_blocks b WHERE b.first_launch = u.upload_id * {IDS_PER_UPLOAD} + 1)), 0)
           AS metrics,
           (SELECT CAST(coalesce(sum(length(k.kernel)), 0) AS BIGINT) FROM kernel_totals t
            JOIN kernels k ON k.kernel_id = t.kernel_id WHERE t.upload_id = u.upload_id) AS letters
    FROM uploads u WHERE u.run_id = :run_id AND u.launches > 0
""")
_MARKED_FILES = text("SELECT upload_id, same_as FROM uploads WHERE run_id = :run_id")
_INSERT_TWINS = text("""
    INSERT INTO twins (launch_id, first_id)
    SELECT l.launch_id, coalesce(w.first_id, l.launch_id + :shift)
    FROM launches l LEFT JOIN twins w ON w.launch_id = l.launch_id + :shift
    WHERE l.launch_id BETWEEN :first AND :last
""")
_NAMES = text("""
    SELECT DISTINCT m.metric_id FROM metrics m WHERE m.launch_ref BETWEEN :first AND :last
    UNION SELECT c.metric_id FROM wide_columns c
    WHERE c.layout_id IN (SELECT b.layout_id FROM wide_blocks b WHERE b.first_launch BETWEEN :first AND :last)
""")


def mark_duplicates(connection: Connection, run_id: int, upload_id: int | None = None, *, again: bool = False) -> None:
    """Determine which files of a run contain the same launches: for all files, or only for a new upload.

    Raise `InputError` if the upload, or one that was read ``again``, shares some launches with another file and
    neither contains all of them.
    """
    ours = _DuplicateSearch(connection, run_id)
    ours.search(None if again else upload_id)
    if upload_id in ours.by_id and upload_id not in ours.first:
        reject_duplicate_capture(connection, ours.by_id[upload_id], run_id)


def mark_duplicates_of_run(engine: Engine, run_id: int) -> None:
    """Determine again which files of a run contain the same launches, for stores written by an older program."""
    with writing(engine) as connection:
        lock_existing_row(connection, "runs", "run_id", run_id)
        mark_duplicates(connection, run_id)
        join_source_pages(connection, run_id)
        count_change(connection, run_id)


def files_by_metrics(engine: Engine, run_id: int) -> list[int]:
    """Return the files of a run with launches, ordered by number of metrics."""
    with reading(engine) as connection:
        rows = [LaunchFile(*row) for row in connection.execute(_FILES, {"run_id": run_id})]
    return [file.upload_id for file in sorted(rows, key=lambda file: (-file.metrics, *file.place))]


def duplicate_messages(engine: Engine, run_id: int, upload_id: int) -> list[str]:
    """Return which file represents the launches of a file, or why none does."""
    query = "SELECT upload_id, file_name, same_as_reason FROM uploads WHERE run_id = :run_id AND same_as_reason <> ''"
    with reading(engine) as connection:
        rows = connection.execute(text(f"{query} ORDER BY upload_id"), {"run_id": run_id}).all()
    own = [reason for number, _, reason in rows if number == upload_id]
    return own + [
        f"{name} (upload {number}): {reason}" for number, name, reason in rows if f"(upload {upload_id})" in reason
    ]


class _DuplicateSearch:
    """The compared files of a run, ordered by their priority to represent others."""

    def __init__(self, connection: Connection, run_id: int) -> None:
        self.connection, self.run_id = connection, run_id
        rows = connection.execute(_FILES, {"run_id": run_id}).all()
        self.files = sorted((LaunchFile(*row) for row in rows), key=lambda file: file.place)
        standing = connection.execute(_MARKED_FILES, {"run_id": run_id}).all()
        self.before = {number: same for number, same in standing if same is not None}
        self.first: dict[int, int] = {}
        self.by_id = {file.upload_id: file for file in self.files}

    def search(self, changed: int | None) -> None:
        if len(self.files) < 2 and not self.before:
            return
        if changed is None:
            for file in self.files:
                self._forget(file)
                self._mark(file, None, None)
        self.kernels = Kernels(self.connection, list(self.by_id))
        if changed is not None:
            self.first = {number: same for number, same in self.before.items() if number != changed}
        close, beginning = set[int](), set[int]()
        if changed is not None:
            close, beginning = (
                files_with_same_start(self.connection, self.run_id, changed, by_other=by_other)
                for by_other in (False, True)
            )
        for place, file in enumerate(self.files):
            earlier = self.files[:place]
            lost = file.upload_id in self.first and self.first[file.upload_id] in self.first
            if changed in {None, file.upload_id} or lost:
                self._place(file, earlier)
            elif file.upload_id not in self.first or file.upload_id in close:  # only the new file may contain it
                new = [other for other in earlier if other.upload_id == changed]
                known = {other.upload_id for other in new if file.upload_id in beginning}
                self._place(file, new, known, again=file.upload_id in self.first)
        self._forget_results(changed)
        if self.first or self.before:
            self._repeats()

    def _place(
        self, file: LaunchFile, earlier: Sequence[LaunchFile], close: set[int] | None = None, again: bool = False
    ) -> None:
        """Find the file that contains the launches of this one; ``again``: one is already known to contain it.

        ``close``: those of ``earlier`` with the same first launch, where they are known.
        """
        if close is None:
            close = files_with_same_start(self.connection, self.run_id, file.upload_id)
        if self._place_by_report(file, [other for other in earlier if other.upload_id in close]) or again:
            return
        others = [other for other in earlier if other.upload_id not in self.first]
        if self._place_by_numbers(file, others):
            return
        is_placed, reason = self._place_by_execution(file, others)
        if not is_placed and (reason is not None or file.upload_id in self.first):
            self._forget(file)
            self._mark(file, None, reason)

    def _place_by_report(self, file: LaunchFile, others: Sequence[LaunchFile]) -> bool:
        """Take the launches for those of another page of the same report, if one of ``others`` is such a page."""
        for other in others:
            if other.tool == file.tool and same_report(self.connection, file, other):
                self._forget(file)
                shift = (other.upload_id - file.upload_id) * IDS_PER_UPLOAD
                self.connection.execute(_INSERT_TWINS, {"shift": shift, **file.bounds})
                first = self.by_id[self.first.get(other.upload_id, other.upload_id)]
                self._mark(file, first, f"of the same report as {other}")
                return True
        return False

    def _place_by_numbers(self, file: LaunchFile, others: Sequence[LaunchFile]) -> bool:
        """Take the launches for those with the same process and ID, if one of ``others`` has them all."""
        for other in others:
            if not self.kernels.may_contain(file, other):
                continue
            if (numbered := numbered_launches(self.connection, file, other)) is not None:
                self._forget(file)
                self._write(list(numbered), list(numbered.values()))
                self._mark(file, other, f"its launches are those of {other} with the same process and ID")
                return True
        return False

    def _place_by_execution(self, file: LaunchFile, others: Sequence[LaunchFile]) -> tuple[bool, str | None]:
        """Find the launches in the trace of the same execution; return also why those of the first are others."""
        reason = None
        for other in others:
            if not self._differ(file, other):
                continue
            found = same_execution(self.connection, file, other, self.kernels)
            if isinstance(found, str):
                reason = reason or f"not taken for launches of {other}, and counted beside them: {found}"
                continue
            self._forget(file)
            own, theirs, alone = found
            self._write(own.tolist(), theirs.tolist())
            which = "" if alone else "; which of those that are alike cannot be told, and the first that fit are taken"
            self._mark(file, other, f"its launches are launches of {other}{which}")
            return True, None
        return False, reason

    def _differ(self, file: LaunchFile, other: LaunchFile) -> bool:
        """Return whether two files may be from one execution despite different times: a profile and a trace."""
        return (file.tool != other.tool or file.timed != other.timed) and self.kernels.shared(file, other)

    def _forget(self, file: LaunchFile) -> None:
        self.connection.execute(text("DELETE FROM twins WHERE launch_id BETWEEN :first AND :last"), file.bounds)

    def _write(self, own: list[int], theirs: list[int]) -> None:
        rows = [{"launch_id": one, "first_id": first} for one, first in zip(own, theirs, strict=True)]
        for begin in range(0, len(rows), ROWS_PER_INSERT):
            self.connection.execute(insert(metadata.tables["twins"]), rows[begin : begin + ROWS_PER_INSERT])

    def _mark(self, file: LaunchFile, first: LaunchFile | None, reason: str | None) -> None:
        if first is None:
            self.first.pop(file.upload_id, None)
        else:
            self.first[file.upload_id] = first.upload_id
        query = text("UPDATE uploads SET same_as = :same, same_as_reason = :reason WHERE upload_id = :upload_id")
        same = None if first is None else first.upload_id
        self.connection.execute(query, {"same": same, "reason": reason, "upload_id": file.upload_id})

    def _forget_results(self, changed: int | None) -> None:
        """Request new results for the launches that other files tell of now."""
        others = {number for number in {*self.before, *self.first} if self.before.get(number) != self.first.get(number)}
        for number in sorted(others - {changed}):
            for file in (number, self.before.get(number)):  # a file of before may have no launches any more
                if file in self.by_id:
                    forget_results(self.connection, self.run_id, "BETWEEN :first AND :last", **self.by_id[file].bounds)
        for number in sorted(others & {*self.first}):
            forget_results(self.connection, self.run_id, f"IN ({OF_TWINS})", **self.by_id[number].bounds)
        if others and changed is None:
            query = text("UPDATE runs SET version_id = NULL WHERE run_id = :run_id")
            self.connection.execute(query, {"run_id": self.run_id})

    def _repeats(self) -> None:
        """Mark the data that a file repeats: for every kind of event one file per execution counts."""
        groups: dict[int, list[LaunchFile]] = {}
        for file in self.files:
            groups.setdefault(self.first.get(file.upload_id, file.upload_id), []).append(file)
        for group in groups.values():
            repeats = dict.fromkeys(group, 0)
            for name, key in EVENTS.items() if len(group) > 1 else ():
                for file in self._holding(group, name, key)[1:]:
                    repeats[file] |= REPEATED_BITS[name]
            for file in self._without_new_metrics(group):
                repeats[file] |= REPEATED_BITS["metrics"]
            for file, bits in repeats.items():
                query = text("UPDATE uploads SET repeats = :bits WHERE upload_id = :upload_id")
                self.connection.execute(query, {"bits": bits or None, "upload_id": file.upload_id})

    def _holding(self, group: Iterable[LaunchFile], table: str, key: str) -> list[LaunchFile]:
        query = text(f"SELECT 1 FROM {table} WHERE {key} BETWEEN :first AND :last LIMIT 1")
        return [file for file in group if self.connection.execute(query, file.bounds).first() is not None]

    def _without_new_metrics(self, group: Sequence[LaunchFile]) -> list[LaunchFile]:
        """Return the files whose metrics are all in another file of the same report."""
        if len(group) < 2:
            return []
        names = {file: set(self.connection.execute(_NAMES, file.bounds).scalars()) for file in group if file.metrics}
        found: list[LaunchFile] = []
        for file, own in names.items():
            close = files_with_same_start(self.connection, self.run_id, file.upload_id)
            better = (
                other for other in names
                if other not in found and other.tool == file.tool
                and other.launches >= file.launches and own <= names[other]
                and (own < names[other] or self.files.index(other) < self.files.index(file))
            )  # fmt: skip
            if any(
                (other.upload_id in close and same_report(self.connection, file, other))
                or numbered_launches(self.connection, file, other) is not None
                for other in better
            ):
                found.append(file)
        return found
