"""The views of runs, files, devices and kernels."""

from profsvc.store.schema.archives import ARCHIVED_SQL
from profsvc.store.schema.view_definition import _RUN_DEVICES, RUN_DEVICE_SQL, ViewDefinition, text_of, view_columns

BRANCH_TAG = "branch"
MAIN_BRANCHES = ("main", "master", "trunk")
"""Branches whose runs are one history, with those that name no branch; every other branch has its own."""
ALL_BRANCHES = "*"
"""Asks for runs of every branch; git allows no branch to be called so."""
BRANCH_SQL = f"""(
    SELECT t.value FROM run_tags t WHERE t.run_id = r.run_id AND t.key = '{BRANCH_TAG}'
      AND t.value NOT IN ('', {", ".join(map(repr, MAIN_BRANCHES))}))"""
"""The branch of a run ``r``, by its tag; null for a main branch. Runs of different branches are no history of each
other."""

VIEW_DEFINITIONS: dict[str, ViewDefinition] = {
    "v1_runs": ViewDefinition(
        "Runs: one execution of a program or one measurement campaign.",
        "runs r LEFT JOIN devices d ON d.device_id = r.device_id",
        view_columns(
            "r",
            "run_id | int | run number",
            "project | text | project of the run",
            "name | text | name of the run, unique in the project",
            (
                f"device | text | {RUN_DEVICE_SQL} | product name of the device, as given or as named by the files; "
                "null if they name several"
            ),
            (
                "devices",
                "text",
                f"coalesce((SELECT {{names}} FROM (SELECT DISTINCT e.name FROM {_RUN_DEVICES.format('r.run_id')}"
                f" ORDER BY 1) n), {RUN_DEVICE_SQL})",
                "product names of all devices in its files, joined by +",
            ),
            "compute_capability | text | NULLIF(d.compute_capability, '') | of that device, such as 9.0",
            "host | text | host of the run",
            "commit_id | text | commit of the program",
            "started_at | text | start of the run, UTC, ISO 8601",
            "created_at | text | time of its first upload, UTC, ISO 8601",
            (
                "tags | text | (SELECT {json_object} FROM run_tags t WHERE t.run_id = r.run_id) | tags as a JSON "
                "object of texts"
            ),
            "uploads | int | (SELECT count(*) FROM uploads u WHERE u.run_id = r.run_id) | number of files",
            (
                "launches",
                "int",
                "(SELECT CAST(coalesce(sum(u.launches), 0) AS BIGINT) FROM uploads u"
                " WHERE u.run_id = r.run_id AND u.same_as IS NULL)",
                "number of launches; a launch that several files contain counts once",
            ),
            (
                "gpu_time_ns",
                "float",
                "(SELECT sum(u.gpu_time_ns) FROM uploads u WHERE u.run_id = r.run_id AND u.same_as IS NULL)",
                "total duration of the launches, from a trace rather than a profile; null without durations",
            ),
            (
                "samples | int | (SELECT CAST(coalesce(sum(u.samples), 0) AS BIGINT) FROM uploads u WHERE u.run_id "
                "= r.run_id) | number of sensor readings in its files"
            ),
            f"analysis_version | text | {text_of('r.version_id')} | newest analysis version; null before the first",
            (
                "archived",
                "text",
                f"(SELECT {ARCHIVED_SQL} WHERE a.archive_id = (SELECT max(u.archive_id) FROM uploads u"
                " WHERE u.run_id = r.run_id))",
                "why the rows of its launches, metrics and readings are absent; null if the store has them",
            ),
        ),
    ),
    "v1_uploads": ViewDefinition(
        "Uploaded files; a file is identified within its run by its SHA-256.",
        "uploads u LEFT JOIN timelines t ON t.upload_id = u.upload_id",
        view_columns(
            "u",
            "upload_id | int | upload number",
            "run_id | int | run of the file",
            "file_name | text | name of the file as given",
            "sha256 | text | SHA-256 of the bytes as uploaded, compressed or not",
            "size_bytes | int | number of those bytes",
            "format | text | detected format",
            "tool | text | tool that wrote it",
            "tool_version | text | version of that tool",
            "status | text | stored, or partial if lines were rejected",
            "lines | int | lines of the uncompressed file",
            "lines_stored | int | lines that were stored",
            "lines_skipped | int | lines recognized as containing no data",
            "lines_rejected | int | rejected lines; see v1_rejects",
            "launches | int | number of launches",
            "samples | int | number of sensor readings",
            "same_as | int | upload of the same run that contains all its launches and represents them; else null",
            "same_as_reason | text | evidence for same_as, or why the launches are counted separately",
            "gpu_time_ns | float | sum of the durations of its launches; null if there are none",
            (
                "first_start_ns | int | t.first_ns | start of the first launch; "
                "null if no launch has a start and a duration"
            ),
            "span_ns | float | t.span_ns | time from there to the end of the last launch",
            "busy_ns | float | t.busy_ns | part of this time in which at least one launch ran",
            "message | text | message about the whole file",
            "facts | text | further facts found in the file, as a JSON object of texts",
            "received_at | text | time of the upload, or the time given with --at, UTC, ISO 8601",
            f"archived | text | (SELECT {ARCHIVED_SQL} WHERE a.archive_id = u.archive_id) | why its rows are absent; "
            "null if the store has them",
        ),
    ),
    "v1_rejects": ViewDefinition(
        "Rejected lines of files, with the reason.",
        "rejects j JOIN uploads u ON u.upload_id = j.upload_id",
        view_columns(
            "j",
            "upload_id | int | upload",
            "run_id | int | u.run_id | run",
            "line | int | first line of the record, from 1",
            "lines | int | number of lines; 0 if another record counts the line",
            "reason | text | reason for the rejection",
            "text | text | first 2000 characters of the record",
        ),
    ),
    "v1_characterizations": ViewDefinition(
        "Device characterizations: measured points of a function, or the measured cost of an operation.",
        "characterizations m JOIN uploads u ON u.upload_id = m.upload_id",
        view_columns(
            "m",
            "upload_id | int | upload; the newest one counts for each device and quantity",
            "run_id | int | u.run_id | run",
            "device | text | product name of the measured device",
            "quantity | text | a function such as F_DRAMThr, or a cost such as k_l2_load",
            "x | float | position in the sweep of a function; null for a cost without one",
            "y | float | share of the peak for a function; cycles per operation for a cost",
            "unit | text | unit of y as printed",
            "method | text | measurement method",
            "line | int | line in the file, from 1",
        ),
    ),
    "v1_devices": ViewDefinition(
        "GPU models named by runs or launches.",
        f"devices d WHERE d.name <> '' OR NOT EXISTS (SELECT 1 FROM upload_devices x WHERE x.device_id = d.device_id)"
        " OR EXISTS (SELECT 1 FROM upload_devices x JOIN uploads v ON v.upload_id = x.upload_id"
        f" WHERE x.device_id = d.device_id AND NOT EXISTS (SELECT 1 FROM {_RUN_DEVICES.format('v.run_id')}"
        " AND e.compute_capability = d.compute_capability))",
        view_columns(
            "d",
            "device_id | int | device number",
            "name | text | NULLIF(d.name, '') | product name; null if the export lacks it",
            "compute_capability | text | NULLIF(d.compute_capability, '') | such as 9.0; null if unknown",
            "sms | int | number of streaming multiprocessors; null if unknown",
            "facts | text | further device properties, as a JSON object",
        ),
    ),
    "v1_kernels": ViewDefinition(
        "Distinct kernels.",
        "kernels k",
        view_columns(
            "k",
            "kernel_id | int | kernel number",
            "kernel | text | full name as printed",
            "kernel_short | text | name without types and parameters",
        ),
    ),
}
