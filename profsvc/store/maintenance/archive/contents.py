"""What an archive contains: the views that people read, the base tables that leave the store, and its manifest."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from profsvc.errors import ServiceError
from profsvc.store.maintenance.archive.parquet_files import Span
from profsvc.store.maintenance.archive.place import Place, reading_file
from profsvc.store.results.writer import RANGE_KEYS
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.results.launch_results import RESULTS

VIEWS = (
    "v1_runs", "v1_uploads", "v1_kernel_totals", "v1_launches", "v1_transfers", "v1_api_calls", "v1_ranges",
    "v1_kernel_summaries", "v1_counter_values", "v1_metrics", "v1_rules", "v1_criteria", "v1_potential", "v1_models",
    "v1_causes", "v1_sensors", "v1_samples", "v1_source_kernels", "v1_source_lines", "v1_source_stalls",
)  # fmt: skip
"""Views whose rows of the month are written, to folders without ``v1_``."""
_STAYING = {"sensors", "kernel_summaries"}  # one row per channel or kernel, which lists and history show


class Leaving(NamedTuple):
    """A base table whose rows leave the store; ``key / per_owner`` is the upload, or the run if ``of_run``."""

    key: str
    per_owner: int = IDS_PER_UPLOAD
    of_run: bool = False
    condition: str = ""


# In the order in which rows can be deleted; they return in the opposite one.
TABLES = {
    **{name: Leaving("run_id", 1, of_run=True, condition=" AND launch_id > 0") for name in RESULTS},
    "listed_launches": Leaving("upload_id", 1),
    **{name: Leaving(key) for name, key in RANGE_KEYS.items() if name not in _STAYING},
}


class Group(NamedTuple):
    """Runs whose rows leave and return in one transaction.

    ``runs`` has the change count of each when its rows were read, ``uploads`` the run of each file, and ``spans``
    where the rows of each table are.
    """

    runs: dict[int, int]
    uploads: dict[int, int]
    spans: dict[str, Span]

    def owners(self, table: Leaving) -> list[int]:
        """Return the runs or uploads that rows of a table belong to."""
        return sorted(self.runs if table.of_run else self.uploads)


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as ranges, both ends included.

    >>> ranges([1, 2, 3, 7])
    [(1, 3), (7, 7)]
    """
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def view_path(view: str, month: str, part: int) -> str:
    """Return the file of a view.

    >>> view_path("v1_launches", "2026-03", 0)
    'launches/month=2026-03/part-0.parquet'
    """
    return f"{view.removeprefix('v1_')}/month={month}/part-{part}.parquet"


def table_path(table: str, month: str, part: int) -> str:
    """Return the file of a base table."""
    return f"store/{table}/month={month}/part-{part}.parquet"


def manifest_path(month: str, part: int) -> str:
    """Return the file that lists all others of an archive."""
    return f"manifests/month={month}/part-{part}.json"


def manifest_bytes(about: dict[str, Any], files: dict[str, dict[str, Any]], groups: Sequence[Group]) -> bytes:
    """Return a manifest: facts about the archive, its files, and its groups of runs."""
    listed = [group._asdict() for group in groups]
    return json.dumps({**about, "files": files, "groups": listed}, indent=1).encode()


def read_manifest(place: Place, month: str, part: int, sha256: str | None = None) -> dict[str, Any]:
    """Read a manifest; raise `ServiceError` unless it has this checksum."""
    path = manifest_path(month, part)
    with reading_file(place, path) as file:
        content = file.read()
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise ServiceError(f"{place.address}/{path} is not the manifest that was written; nothing was changed")
    return dict(json.loads(content))


def groups_of(manifest: dict[str, Any]) -> list[Group]:
    """Return the groups of runs of a manifest."""
    return [
        Group(
            {int(run): changes for run, changes in group["runs"].items()},
            {int(upload): run for upload, run in group["uploads"].items()},
            {table: Span(*span) for table, span in group["spans"].items()},
        )
        for group in manifest["groups"]
    ]


def duckdb_views(place: Place) -> bytes:
    """Return the statements that make the archive's views in DuckDB, under the names that they have in the store."""
    lines = ["-- duckdb -init views.sql: the views of all archived months, with the further column month."]
    for view in VIEWS:
        files = f"{place.address}/{view.removeprefix('v1_')}/*/*.parquet".replace("'", "''")
        source = f"read_parquet('{files}', hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
        lines.append(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {source};")
    return "\n".join([*lines, ""]).encode()
