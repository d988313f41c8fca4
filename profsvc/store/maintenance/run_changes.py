"""Renaming and tagging a run."""

from collections.abc import Mapping

from profsvc.errors import NotFoundError, UsageError
from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import writing
from profsvc.store.ingest.runs import check_texts, is_visible


def change_run(
    engine: Engine, run_id: int, name: str | None = None, tags: Mapping[str, str | None] | None = None
) -> list[str]:
    """Give a run another name, and set its tags; a tag without a value is removed. Return what changed.

    Raise `UsageError` if its project has a run of that name.
    """
    check_texts(name, *(tags or {}), *(tags or {}).values())
    if name is not None and not is_visible(name):
        raise UsageError("a run needs a name that can be seen")
    if any(not is_visible(key) or "=" in key for key in tags or {}):
        raise UsageError("a tag needs a key without =, such as branch")
    changed = []
    with writing(engine) as connection:
        row = connection.execute(
            text("SELECT project, name FROM runs WHERE run_id = :run_id"), {"run_id": run_id}
        ).first()
        if row is None:
            raise NotFoundError(f"no run has the number {run_id}")
        if name is not None and name != row.name:
            given = {"run_id": run_id, "name": name, "project": row.project}
            taken = text("SELECT 1 FROM runs WHERE project = :project AND name = :name")
            if connection.execute(taken, given).first() is not None:
                raise UsageError(f"the project {row.project!r} has a run named {name!r}; choose another name")
            connection.execute(text("UPDATE runs SET name = :name WHERE run_id = :run_id"), given)
            changed.append("name")
        query = text("SELECT key, value FROM run_tags WHERE run_id = :run_id")
        known = {one.key: one.value for one in connection.execute(query, {"run_id": run_id})}
        for key, value in (tags or {}).items():
            if known.get(key) == value:
                continue
            where = {"run_id": run_id, "key": key}
            connection.execute(text("DELETE FROM run_tags WHERE run_id = :run_id AND key = :key"), where)
            if value is not None:
                query = text("INSERT INTO run_tags (run_id, key, value) VALUES (:run_id, :key, :value)")
                connection.execute(query, where | {"value": value})
            changed.append(f"tag {key}")
    return changed
