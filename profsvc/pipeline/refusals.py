"""Files that were refused, kept for the nightly report."""

from contextlib import suppress
from typing import TYPE_CHECKING

from profsvc import store
from profsvc.errors import InputError, ServiceError

if TYPE_CHECKING:
    from sqlalchemy import Engine


def note(engine: "Engine", run: store.RunInfo, file_name: str, sha256: str, error: InputError) -> None:
    """Write down for the nightly report that a file was refused; a store that cannot be written hides no error."""
    with suppress(ServiceError):
        project, name = run.project, run.name
        if run.run_id and (known := store.select(engine, "v1_runs", run_id=run.run_id)):
            project, name = known[0]["project"], known[0]["name"]
        store.note_refusal(engine, project, name, file_name, sha256, error)
