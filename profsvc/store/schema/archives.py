"""The base tables and the view of archives: months whose rows are in Parquet files, and what of them history needs.

A file with ``uploads.archive_id`` has no rows in the tables that `profsvc.store.maintenance.archive` writes. Its totals
stay, and ``archived_values`` has the criteria and the potential of its kernels, averaged over launches before they
went. There ``criterion_id`` 0 means the potential, and of the whole run the share of criteria without a value.
"""

from profsvc.store.schema.column_types import check, fields, key, ref, row_id, table, unique
from profsvc.store.schema.view_definition import ViewDefinition, view_columns

STATES = ("dropping", "archived", "restoring")

archives = table(
    "archives",
    row_id("archive_id"),
    *fields("month text, part int, place text, state text, sha256 text, made_at text, row_count int, size_bytes int"),
    unique("month", "part"),
    check("state IN ('{}')".format("', '".join(STATES)), "state"),
    sqlite_autoincrement=True,
)
archived_values = table(
    "archived_values",
    ref("run_id", "runs.run_id", cascade=True, primary_key=True),
    key("kernel_id"),
    key("criterion_id"),
    *fields("value float?, low float?, high float?, reason_id int?"),
    clustered=True,
)

TABLES = (archives, archived_values)

ARCHIVED_SQL = (
    "'archived on ' || substr(a.made_at, 1, 10) || ' to ' || a.place || '; to restore its rows, run: "
    "profsvc db restore ' || a.month FROM archives a"
)
"""The SQL for why rows are absent, without the condition that chooses the archive."""

VIEW_DEFINITIONS = {
    "v1_archives": ViewDefinition(
        "Archived months: their Parquet files have the rows of the views that the store no longer has.",
        "archives a",
        view_columns(
            "a",
            "archive_id | int | archive number",
            "month | text | month of the newest upload of its runs, UTC, such as 2026-03",
            "part | int | ordinal of the archive in the month, from 0; its files are part-N.parquet",
            "place | text | folder or URL with the files",
            "state | text | archived; dropping or restoring while that goes on, or was interrupted",
            "made_at | text | time of the archive, UTC, ISO 8601",
            "uploads | int | (SELECT count(*) FROM uploads u WHERE u.archive_id = a.archive_id) | number of its files"
            " whose rows are only in the archive",
            "row_count | int | number of rows removed from the tables of the store",
            "size_bytes | int | size of its Parquet files",
        ),
    )
}
