"""Two files of one capture, such as a report and a database of Nsight Systems: the same launches, told twice.

Where one file has all launches of another they count once (`profsvc.store.twins`). Here are files that share some, or
tell them in an order of their own: each would count twice.
"""

from sqlalchemy import Connection, bindparam, text

from profsvc.errors import InputError
from profsvc.store.same_report import SAMPLES, File
from profsvc.store.schema import STEP

# Files of one capture agree in the sum of some kernel, as printed by the nanosecond; so few others need a closer look.
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


def refuse_told_again(connection: Connection, file: File, run_id: int) -> None:
    """Raise `InputError` if another file of the run holds launches of this one: same kernel, start and duration."""
    files = connection.execute(_CANDIDATES, {"run_id": run_id, "upload_id": file.upload_id}).all()
    if not files:
        return
    count = min(file.launches, SAMPLES)
    some = [file.bounds["first"] + number * file.launches // count for number in range(count)]
    sample = {tuple(row) for row in connection.execute(_SAMPLE, {"some": some})}
    for other, name in files if sample else ():
        bounds = {"first": other * STEP, "last": other * STEP + STEP - 1, "starts": [start for start, *_ in sample]}
        if twice := sorted(sample & {tuple(row) for row in connection.execute(_AGAIN, bounds)}):
            start, duration, kernel = twice[0]
            raise InputError(
                f"it tells again of launches that {name} (upload {other}) of this run holds, and each would count "
                f"twice: {kernel!r} begins at {start} ns and takes {duration:g} ns in both, as do {len(twice)} of "
                f"{len(sample)} launches looked up; keep one of the two files, or put each into a run of its own"
            )
