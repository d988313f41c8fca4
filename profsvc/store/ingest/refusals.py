"""Files that were refused, and why."""

from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.timestamps import now
from profsvc.store.connection.transactions import writing
from profsvc.store.ingest.inserts.row_insert import insert_row

MAX_REFUSALS = 10_000
MAX_MESSAGE_CHARS = 2000


def _storable(words: str) -> str:
    """Return words as both databases take them: no NUL, no half of a character.

    >>> _storable("a\\0b")
    'a\\\\x00b'
    """
    return words.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def save_refusal(engine: Engine, project: str, run: str | None, file_name: str, sha256: str, error: Exception) -> None:
    """Write down that a file was refused, and why; of very many only the newest are kept."""
    code = getattr(type(error), "code", lambda: "error")()
    row = {"project": project, "run": run, "file_name": file_name, "sha256": sha256, "code": code}
    row |= {"message": str(error)[:MAX_MESSAGE_CHARS], "refused_at": now()}
    row = {name: _storable(value) if isinstance(value, str) else value for name, value in row.items()}
    with writing(engine) as connection:
        number = insert_row(connection, "refusals", "refusal_id", row)
        query = text("DELETE FROM refusals WHERE refusal_id <= :old")
        connection.execute(query, {"old": number - MAX_REFUSALS})
