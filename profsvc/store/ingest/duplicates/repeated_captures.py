"""Detect two files of one capture, such as a report and a database of Nsight Systems.

If one file contains all launches of another, they count once (`profsvc.store.ingest.duplicates.shared_launches`).
This module rejects files that only share some launches or have another order, because these launches would count twice.
"""

from profsvc.errors import InputError
from profsvc.store.connection.sql import Connection, bindparam, text
from profsvc.store.ingest.duplicates.report_pages import SAMPLED_LAUNCHES, LaunchFile
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

# Files of one capture agree in the total time of some kernel to the nanosecond, so few files need a closer check.
_CANDIDATES = text("""
    WITH sums AS (
      SELECT t.upload_id, k.kernel_short, sum(t.timed) AS timed, sum(t.total_ns) AS total_ns
      FROM kernel_totals t JOIN kernels k ON k.kernel_id = t.kernel_id JOIN uploads u ON u.upload_id = t.upload_id
      WHERE u.run_id = :run_id AND u.same_as IS NULL AND t.timed > 0
      GROUP BY t.upload_id, k.kernel_short)
    SELECT DISTINCT u.upload_id, u.file_name FROM sums own
    JOIN sums other ON other.kernel_short = own.kernel_short AND other.timed = own.timed
      AND abs(other.total_ns - own.total_ns) < 0.5 AND other.upload_id <> own.upload_id
    JOIN uploads u ON u.upload_id = other.upload_id
    WHERE own.upload_id = :upload_id ORDER BY u.upload_id
""")
_LAUNCHES = """
    SELECT a.start_ns, a.duration_ns, k.kernel_short FROM launches a
    JOIN shapes s ON s.shape_id = a.shape_id JOIN kernels k ON k.kernel_id = s.kernel_id
    WHERE a.launch_id {} AND a.start_ns {} AND a.duration_ns IS NOT NULL
"""
_SAMPLE = text(_LAUNCHES.format("IN :some", "IS NOT NULL")).bindparams(bindparam("some", expanding=True))
_AGAIN = text(_LAUNCHES.format("BETWEEN :first AND :last", "IN :starts")).bindparams(
    bindparam("starts", expanding=True)
)


def reject_duplicate_capture(connection: Connection, file: LaunchFile, run_id: int) -> None:
    """Raise `InputError` if another file of the run contains launches of this one: same kernel, start and duration."""
    files = connection.execute(_CANDIDATES, {"run_id": run_id, "upload_id": file.upload_id}).all()
    if not files:
        return
    count = min(file.launches, SAMPLED_LAUNCHES)
    some = [file.bounds["first"] + number * file.launches // count for number in range(count)]
    sample = {tuple(row) for row in connection.execute(_SAMPLE, {"some": some})}
    for other, name in files if sample else ():
        bounds = {
            "first": other * IDS_PER_UPLOAD,
            "last": other * IDS_PER_UPLOAD + IDS_PER_UPLOAD - 1,
            "starts": [start for start, *_ in sample],
        }
        if twice := sorted(sample & {tuple(row) for row in connection.execute(_AGAIN, bounds)}):
            start, duration, kernel = twice[0]
            raise InputError(
                f"the file repeats launches of {name} (upload {other}) in this run, which would count twice: "
                f"{kernel!r} starts at {start} ns and takes {duration:g} ns in both, and {len(twice)} of "
                f"{len(sample)} checked launches agree; keep one of the two files (if this one has more, first delete "
                f"the other: profsvc delete {run_id} --upload {other}), or upload each to its own run"
            )
