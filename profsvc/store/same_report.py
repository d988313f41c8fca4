"""Pages of one report: files of a run with the same launches, which are the same work and count once."""

from sqlalchemy import Connection, text

from profsvc.store.schema import STEP

# All launches of two files agree in all that a page prints of them; pages print durations to three digits at least.
_SAME_REPORT = """
    SELECT min(o.upload_id) FROM uploads o
    WHERE o.run_id = :run_id AND o.upload_id <> :upload_id AND o.upload_id < :before
      AND o.launches = :launches AND o.same_as IS NULL
      AND :launches = (
        SELECT count(*) FROM launches a
        JOIN launches b ON b.launch_id = a.launch_id + (:upload_id - o.upload_id) * :step
        JOIN places p ON p.place_id = a.place_id JOIN places q ON q.place_id = b.place_id
        JOIN shapes s ON s.shape_id = a.shape_id JOIN shapes t ON t.shape_id = b.shape_id
        WHERE a.launch_id BETWEEN o.upload_id * :step AND o.upload_id * :step + :step - 1
          AND (a.source_id = b.source_id OR a.correlation_id = b.correlation_id)
          AND p.process_id = q.process_id AND s.kernel_id = t.kernel_id
          AND a.grid_x = b.grid_x AND a.grid_y = b.grid_y AND a.grid_z = b.grid_z
          AND s.block_x = t.block_x AND s.block_y = t.block_y AND s.block_z = t.block_z
          AND abs(a.duration_ns - b.duration_ns) <= 0.005 * b.duration_ns)
"""


def same_report(
    connection: Connection, upload_id: int, run_id: int, launches: int, before: int | None = None
) -> int | None:
    """Return the first upload of the run with the same launches: another page of one report, not new work.

    Only uploads with a number below ``before`` count, if it is given.
    """
    if not launches:
        return None
    bounds = {"upload_id": upload_id, "run_id": run_id, "launches": launches, "step": STEP, "before": before or STEP}
    found = connection.execute(text(_SAME_REPORT), bounds).scalar()
    return None if found is None else int(found)


def settle_pages(connection: Connection, run_id: int) -> None:
    """Find anew which files of a run are pages of one report, after one of them went or came back."""
    query = text("SELECT upload_id, launches FROM uploads WHERE run_id = :run_id ORDER BY upload_id")
    for upload_id, launches in connection.execute(query, {"run_id": run_id}).all():
        same = same_report(connection, upload_id, run_id, launches, upload_id)
        assign = text("UPDATE uploads SET same_as = :same WHERE upload_id = :upload_id")
        connection.execute(assign, {"same": same, "upload_id": upload_id})
