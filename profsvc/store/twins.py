"""Launches that several files of a run tell of are one launch with several sources.

A file all of whose launches are in another is marked with it (``uploads.same_as``), and each of its launches with the
one that it is (``twins``). The file that has them all stands for them, with its times: of files with the same launches
a trace before a profile, whose launches are disturbed by counting, then the one with most metrics, then the first that
came. What stands for what does not depend on the order in which files come, go and come back.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, Engine, insert, text

from profsvc.store.engine import reading, writing
from profsvc.store.finished import note_change
from profsvc.store.results import must_exist
from profsvc.store.same_capture import refuse_told_again
from profsvc.store.same_execution import Kernels, same_execution
from profsvc.store.same_report import File, alike, same_report
from profsvc.store.schema import REPEATED, RESULTS, STEP, metadata

# What one file of an execution counts for, and the key of its rows; metrics are looked at one by one.
EVENTS = {"transfers": "transfer_id", "api_calls": "call_id", "ranges": "range_id", "kernel_summaries": "summary_id"}
EVENTS |= {"rules": "launch_id"}
ROWS_AT_ONCE = 50_000

_FILES = text(f"""
    SELECT u.upload_id, u.file_name, u.format, u.launches,
           (SELECT count(l.start_ns) FROM launches l WHERE l.launch_id = u.upload_id * {STEP} + 1) AS timed,
           (SELECT count(*) FROM metrics m WHERE m.launch_ref = u.upload_id * {STEP} + 1)
           + coalesce((SELECT count(*) FROM wide_columns c WHERE c.layout_id =
               (SELECT b.layout_id FROM wide_blocks b WHERE b.first_launch = u.upload_id * {STEP} + 1)), 0) AS metrics
    FROM uploads u WHERE u.run_id = :run_id AND u.launches > 0
""")
_STANDING = text("SELECT upload_id, same_as FROM uploads WHERE run_id = :run_id")
_TOLD = text("""
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


def settle(connection: Connection, run_id: int, upload_id: int | None = None, *, again: bool = False) -> None:
    """Find out which files of a run tell of the same launches: of all files, or only what a new upload changes.

    Raise `InputError` where the upload, or one that was read ``again``, tells of some launches of another file and
    neither has all of them.
    """
    ours = _Settling(connection, run_id)
    ours.settle(None if again else upload_id)
    if upload_id in ours.by_id and upload_id not in ours.first:
        refuse_told_again(connection, ours.by_id[upload_id], run_id)


def settle_run(engine: Engine, run_id: int) -> None:
    """Find out anew which files of a run tell of the same launches; of what an older program stored nobody knows."""
    with writing(engine) as connection:
        must_exist(connection, "runs", "run_id", run_id)
        settle(connection, run_id)
        note_change(connection, run_id)


def best_files(engine: Engine, run_id: int) -> list[int]:
    """Return the files of a run that have launches, those with most metrics before those with fewer."""
    with reading(engine) as connection:
        rows = [File(*row) for row in connection.execute(_FILES, {"run_id": run_id})]
    return [file.upload_id for file in sorted(rows, key=lambda file: (-file.metrics, *file.place))]


def said_of_files(engine: Engine, run_id: int, upload_id: int) -> list[str]:
    """Return what was found out of a file and the others of its run: whose launches it has, or why they are others'."""
    query = "SELECT upload_id, file_name, same_as_reason FROM uploads WHERE run_id = :run_id AND same_as_reason <> ''"
    with reading(engine) as connection:
        rows = connection.execute(text(f"{query} ORDER BY upload_id"), {"run_id": run_id}).all()
    own = [reason for number, _, reason in rows if number == upload_id]
    return own + [
        f"{name} (upload {number}): {reason}" for number, name, reason in rows if f"(upload {upload_id})" in reason
    ]


class _Settling:
    """Files of a run that are being compared, those that may stand for others before those."""

    def __init__(self, connection: Connection, run_id: int) -> None:
        self.connection, self.run_id = connection, run_id
        rows = connection.execute(_FILES, {"run_id": run_id}).all()
        self.files = sorted((File(*row) for row in rows), key=lambda file: file.place)
        standing = connection.execute(_STANDING, {"run_id": run_id}).all()
        self.before = {number: same for number, same in standing if same is not None}
        self.first: dict[int, int] = {}
        self.by_id = {file.upload_id: file for file in self.files}

    def settle(self, changed: int | None) -> None:
        if len(self.files) < 2 and not self.before:
            return
        if changed is None:
            for file in self.files:
                self._forget(file)
                self._mark(file, None, None)
        self.kernels = Kernels(self.connection, list(self.by_id))
        if changed is not None:
            self.first = {number: same for number, same in self.before.items() if number != changed}
        close = set() if changed is None else alike(self.connection, self.run_id, changed)
        for place, file in enumerate(self.files):
            earlier = self.files[:place]
            lost = file.upload_id in self.first and self.first[file.upload_id] in self.first
            if changed in {None, file.upload_id} or lost:
                self._place(file, earlier)
            elif file.upload_id not in self.first or file.upload_id in close:  # only the new file may have it
                new = [other for other in earlier if other.upload_id == changed]
                self._place(file, new, again=file.upload_id in self.first)
        self._clear_results(changed)
        if self.first or self.before:
            self._repeats()

    def _place(self, file: File, earlier: Sequence[File], again: bool = False) -> None:
        """Find the file that has the launches of this one; ``again``: it is known to be in one already."""
        close = alike(self.connection, self.run_id, file.upload_id)
        reason = None
        for other in earlier:
            if other.upload_id in close and other.tool == file.tool and same_report(self.connection, file, other):
                self._forget(file)
                shift = (other.upload_id - file.upload_id) * STEP
                self.connection.execute(_TOLD, {"shift": shift, **file.bounds})
                first = self.by_id[self.first.get(other.upload_id, other.upload_id)]
                self._mark(file, first, f"of the same report as {other}")
                return
        for other in earlier if not again else ():
            if other.upload_id in self.first or not self._differ(file, other):
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
            return
        if not again and (reason is not None or file.upload_id in self.first):
            self._forget(file)
            self._mark(file, None, reason)

    def _differ(self, file: File, other: File) -> bool:
        """Tell whether two files may be of one execution though their times differ: a profile, and another's trace."""
        return (file.tool != other.tool or file.timed != other.timed) and self.kernels.shared(file, other)

    def _forget(self, file: File) -> None:
        self.connection.execute(text("DELETE FROM twins WHERE launch_id BETWEEN :first AND :last"), file.bounds)

    def _write(self, own: list[int], theirs: list[int]) -> None:
        rows = [{"launch_id": one, "first_id": first} for one, first in zip(own, theirs, strict=True)]
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            self.connection.execute(insert(metadata.tables["twins"]), rows[begin : begin + ROWS_AT_ONCE])

    def _mark(self, file: File, first: File | None, reason: str | None) -> None:
        if first is None:
            self.first.pop(file.upload_id, None)
        else:
            self.first[file.upload_id] = first.upload_id
        query = text("UPDATE uploads SET same_as = :same, same_as_reason = :reason WHERE upload_id = :upload_id")
        same = None if first is None else first.upload_id
        self.connection.execute(query, {"same": same, "reason": reason, "upload_id": file.upload_id})

    def _clear_results(self, changed: int | None) -> None:
        """Results are those of the launches that stand for others: where these are others now, they are made anew."""
        others = {number for number in {*self.before, *self.first} if self.before.get(number) != self.first.get(number)}
        others.discard(-1 if changed is None else changed)
        for number in sorted(others):
            bounds = {"run_id": self.run_id, "first": number * STEP + 1, "last": number * STEP + STEP - 1}
            for table in RESULTS:
                where = "run_id = :run_id AND launch_id BETWEEN :first AND :last"
                self.connection.execute(text(f"DELETE FROM {table} WHERE {where}"), bounds)
        if others:
            query = text("UPDATE runs SET version_id = NULL WHERE run_id = :run_id")
            self.connection.execute(query, {"run_id": self.run_id})

    def _repeats(self) -> None:
        """Mark what a file tells again: of every kind of event one file of an execution counts."""
        groups: dict[int, list[File]] = {}
        for file in self.files:
            groups.setdefault(self.first.get(file.upload_id, file.upload_id), []).append(file)
        for group in groups.values():
            repeats = dict.fromkeys(group, 0)
            for name, key in EVENTS.items() if len(group) > 1 else ():
                for file in self._holding(group, name, key)[1:]:
                    repeats[file] |= REPEATED[name]
            for file in self._without_new_metrics(group):
                repeats[file] |= REPEATED["metrics"]
            for file, bits in repeats.items():
                query = text("UPDATE uploads SET repeats = :bits WHERE upload_id = :upload_id")
                self.connection.execute(query, {"bits": bits or None, "upload_id": file.upload_id})

    def _holding(self, group: Iterable[File], table: str, key: str) -> list[File]:
        query = text(f"SELECT 1 FROM {table} WHERE {key} BETWEEN :first AND :last LIMIT 1")
        return [file for file in group if self.connection.execute(query, file.bounds).first() is not None]

    def _without_new_metrics(self, group: Sequence[File]) -> list[File]:
        """Return the files whose every metric another file of the same report has as well."""
        if len(group) < 2:
            return []
        names = {file: set(self.connection.execute(_NAMES, file.bounds).scalars()) for file in group if file.metrics}
        found: list[File] = []
        for file, own in names.items():
            close = alike(self.connection, self.run_id, file.upload_id)
            better = (
                other for other in names
                if other not in found and other.upload_id in close and other.tool == file.tool
                and other.launches >= file.launches and own <= names[other]
                and (own < names[other] or self.files.index(other) < self.files.index(file))
            )  # fmt: skip
            if any(same_report(self.connection, file, other) for other in better):
                found.append(file)
        return found
