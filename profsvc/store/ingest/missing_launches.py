"""Values of launches that a file does not have: there are no foreign keys that would refuse them."""

from profsvc.errors import DomainError
from profsvc.store.connection.sql import Connection, text
from profsvc.store.ingest.writers.wide_metrics import first_without_launch
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

_MISSING_LAUNCHES = {
    table: f"SELECT min(m.{key}) FROM {table} m WHERE m.{key} > :first AND m.{key} < :end"
    f" AND NOT EXISTS (SELECT 1 FROM launches l WHERE l.launch_id = m.{key})"
    for table, key in (("metrics", "launch_ref"), ("rules", "launch_id"))
} | {
    "source_kernels": "SELECT min(:first + m.launch_index + 1) FROM source_kernels m"
    " WHERE m.source_id > :first AND m.source_id < :end AND m.launch_index IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM launches l WHERE l.launch_id = :first + m.launch_index + 1)"
}


def refuse_missing_launches(connection: Connection, upload_id: int) -> None:
    """Raise `DomainError` for values and rules of an upload that are of a launch which it does not have."""
    first = upload_id * IDS_PER_UPLOAD
    bounds = {"first": first, "end": first + IDS_PER_UPLOAD}
    lost = {what: connection.execute(text(query), bounds).scalar() for what, query in _MISSING_LAUNCHES.items()}
    lost["metrics"] = lost["metrics"] or first_without_launch(connection, bounds)
    for what, launch in ((what, launch) for what, launch in lost.items() if launch):
        raise DomainError(f"the reader gives {what} of launch {launch - first - 1}, but no such launch")
