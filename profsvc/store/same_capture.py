"""Two files of one capture, such as a report and a database of Nsight Systems: the same launches, told twice.

Pages of one report say different things of their launches and are laid over each other (`same_report`). Files of a
capture tell of its launches again, in an order of their own, and of its copies and calls too: each would count twice.
"""

from sqlalchemy import Connection, bindparam, text

from profsvc.errors import InputError
from profsvc.store.same_report import settle_pages
from profsvc.store.schema import STEP

SAMPLES = 32
# Files of one capture agree in the sum of some kernel, as printed by the nanosecond; so few others need a closer look.
_CANDIDATES = text("""
    WITH sums AS (
      SELECT t.upload_id, k.kernel_short, sum(t.timed) AS timed, sum(t.total_ns) AS total_ns
      FROM kernel_totals t JOIN kernels k ON k.kernel_id = t.kernel_id JOIN uploads u ON u.upload_id = t.upload_id
      WHERE u.run_id = :run_id AND t.timed > 0
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


def refuse_told_again(connection: Connection, upload_id: int, run_id: int, launches: int) -> None:
    """Raise `InputError` if another file of the run holds launches of this one: same kernel, start and duration."""
    page = text("SELECT same_as FROM uploads WHERE upload_id = :upload_id")
    if connection.execute(page, {"upload_id": upload_id}).scalar() is not None:
        return  # its launches count once as they are
    files = connection.execute(_CANDIDATES, {"run_id": run_id, "upload_id": upload_id}).all()
    if not files:
        return
    count = min(launches, SAMPLES)
    some = [upload_id * STEP + number * launches // count + 1 for number in range(count)]
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


def settle(connection: Connection, upload_id: int, run_id: int, launches: int, again: bool) -> None:
    """Let launches that several files of a run hold count once, after one of them was stored, or read ``again``."""
    if again:
        settle_pages(connection, run_id)
    refuse_told_again(connection, upload_id, run_id, launches)
