"""The views of runs, files, devices and kernels, and what all views are written with."""

from typing import NamedTuple

from profsvc.store.schema import REPEATED, STEP


class Shape(NamedTuple):
    """A view as it is written here: what it is, where its rows come from, and its columns.

    ``others`` are more sources of rows, each with the SQL of the columns that it has otherwise.
    """

    sentence: str
    source: str
    columns: tuple[tuple[str, str, str, str], ...]
    others: tuple[tuple[str, dict[str, str]], ...] = ()


def text_of(ref: str) -> str:
    """SQL for the text that ``ref`` numbers."""
    return f"(SELECT x.text FROM texts x WHERE x.text_id = {ref})"


FLAGS = (
    "ZERO_DENOM", "NOT_APPLICABLE", "RAW_OUT_OF_RANGE", "CLIPPED", "EXTRAPOLATED", "INPUT_SUSPECT", "UPPER_BOUND",
    "TAIL_EFFECT", "CASE_AMBIGUOUS", "OVERLAP", "LOWER_BOUND",
)  # fmt: skip


def flag_names(column: str) -> str:
    """SQL for the names of the flags that are raised in a column of results."""
    named = (f"CASE WHEN {column} & {1 << bit} <> 0 THEN '{name} ' ELSE '' END" for bit, name in enumerate(FLAGS))
    return f"rtrim({' || '.join(named)})"


FLAG_NAMES = flag_names("c.flags")
"""SQL for the names of the flags that are raised in a row of results."""

RANGE = f"BETWEEN u.upload_id * {STEP} AND u.upload_id * {STEP} + {STEP - 1}"
_RUN_DEVICES = (
    "uploads u JOIN upload_devices y ON y.upload_id = u.upload_id JOIN devices e ON e.device_id = y.device_id"
    " WHERE u.run_id = {} AND e.name <> ''"
)
_SEVERAL = f"(SELECT count(DISTINCT e.name) FROM {_RUN_DEVICES.format('r.run_id')}) > 1"
DEVICE = (  # of a run of logs alone the one that they name; null where that is several
    "coalesce(NULLIF(d.name, ''), (SELECT CASE WHEN min(s.device) = max(s.device) THEN min(s.device) END"
    f" FROM uploads u JOIN sensors s ON s.sensor_id {RANGE} WHERE u.run_id = r.run_id AND NOT {_SEVERAL}))"
)


def told_once(what: str, file: str = "u") -> str:
    """SQL for the files in which that counts: of the files of one execution one does."""
    return f"({file}.repeats IS NULL OR {file}.repeats & {REPEATED[what]} = 0)"


def of_every_file(shape: Shape, source: str, **others: str) -> Shape:
    """Make the view that has every file's own rows, beside the one that has each launch once."""
    columns = tuple((name, kind, others.get(name, sql), meaning) for name, kind, sql, meaning in shape.columns)
    return Shape(f"Of every file: {shape.sentence[0].lower()}{shape.sentence[1:]}", source, columns)


TIMELINE = {"first_start_ns": "t.first_ns", "span_ns": "t.span_ns", "busy_ns": "t.busy_ns"}

SHAPES: dict[str, Shape] = {
    "v1_runs": Shape(
        "An execution of a program, or a campaign of measurements, on a device.",
        "runs r LEFT JOIN devices d ON d.device_id = r.device_id",
        (
            ("run_id", "int", "r.run_id", "the run's number"),
            ("project", "text", "r.project", "project it belongs to"),
            ("name", "text", "r.name", "its name, unique in the project"),
            (
                "device",
                "text",
                DEVICE,
                "product name of the device, as given or as its files say, if they name one alone",
            ),
            (
                "devices",
                "text",
                f"coalesce((SELECT {{names}} FROM (SELECT DISTINCT e.name FROM {_RUN_DEVICES.format('r.run_id')}"
                f" ORDER BY 1) n), {DEVICE})",
                "product names of all devices that its launches name, with a + between",
            ),
            ("compute_capability", "text", "NULLIF(d.compute_capability, '')", "of that device, such as 9.0"),
            ("host", "text", "r.host", "host it ran on"),
            ("commit_id", "text", "r.commit_id", "commit of the program"),
            ("started_at", "text", "r.started_at", "start of the run, UTC, ISO 8601"),
            ("created_at", "text", "r.created_at", "when it came into the store, UTC, ISO 8601"),
            (
                "tags",
                "text",
                "(SELECT {json_object} FROM run_tags t WHERE t.run_id = r.run_id)",
                "tags as a JSON object of texts",
            ),
            ("uploads", "int", "(SELECT count(*) FROM uploads u WHERE u.run_id = r.run_id)", "how many files it has"),
            (
                "launches",
                "int",
                "(SELECT CAST(coalesce(sum(u.launches), 0) AS BIGINT) FROM uploads u"
                " WHERE u.run_id = r.run_id AND u.same_as IS NULL)",
                "launches of its files; those that several files tell of count once",
            ),
            (
                "gpu_time_ns",
                "float",
                "(SELECT sum(u.gpu_time_ns) FROM uploads u WHERE u.run_id = r.run_id AND u.same_as IS NULL)",
                "sum of their durations, by a trace before a profile; null if no file has durations",
            ),
            (
                "samples",
                "int",
                "(SELECT CAST(coalesce(sum(u.samples), 0) AS BIGINT) FROM uploads u WHERE u.run_id = r.run_id)",
                "readings of sensors in its files",
            ),
            ("analysis_version", "text", text_of("r.version_id"), "newest analysis of it; null before the first"),
        ),
    ),
    "v1_uploads": Shape(
        "A file as it was uploaded into a run, known there by the SHA-256 of its bytes.",
        "uploads u LEFT JOIN timelines t ON t.upload_id = u.upload_id",
        tuple(
            (name, kind, TIMELINE.get(name, f"u.{name}"), meaning)
            for name, kind, meaning in (
                ("upload_id", "int", "the upload's number"),
                ("run_id", "int", "the run it belongs to"),
                ("file_name", "text", "name of the file as given"),
                ("sha256", "text", "SHA-256 of its bytes as given, compressed or not"),
                ("size_bytes", "int", "their number"),
                ("format", "text", "the reader that read it"),
                ("tool", "text", "tool that wrote it"),
                ("tool_version", "text", "version of that tool"),
                ("status", "text", "stored, or partial where lines were rejected"),
                ("lines", "int", "lines of the file, unpacked"),
                ("lines_stored", "int", "lines that became rows"),
                ("lines_skipped", "int", "lines recognised as holding no data"),
                ("lines_rejected", "int", "lines refused; v1_rejects holds them"),
                ("launches", "int", "launches in it"),
                ("samples", "int", "readings of sensors in it"),
                (
                    "same_as",
                    "int",
                    "upload of the run that has all its launches, and stands for them; null if none has",
                ),
                ("same_as_reason", "text", "how that is known, or why it is not so"),
                ("gpu_time_ns", "float", "sum of their durations; null if it has none"),
                ("first_start_ns", "int", "start of the first; null if none has start and duration"),
                ("span_ns", "float", "from there to the end of the last"),
                ("busy_ns", "float", "time of this in which at least one of them ran"),
                ("message", "text", "a sentence about the whole file"),
                ("facts", "text", "what else the reader found out, as a JSON object of texts"),
                ("received_at", "text", "when it was stored, or the time given with it (--at), UTC, ISO 8601"),
            )
        ),
    ),
    "v1_rejects": Shape(
        "A record of a file that was not stored, and why.",
        "rejects j JOIN uploads u ON u.upload_id = j.upload_id",
        (
            ("upload_id", "int", "j.upload_id", "the upload"),
            ("run_id", "int", "u.run_id", "its run"),
            ("line", "int", "j.line", "first line of the record, from 1"),
            (
                "lines",
                "int",
                "j.lines",
                "how many lines it spans; 0 where another record has its line",
            ),
            ("reason", "text", "j.reason", "why it was rejected"),
            ("text", "text", "j.text", "its first 2000 characters"),
        ),
    ),
    "v1_characterizations": Shape(
        "A measured point of a function of a device, or a measured cost of an operation.",
        "characterizations m JOIN uploads u ON u.upload_id = m.upload_id",
        (
            ("upload_id", "int", "m.upload_id", "the upload; the newest counts, for each device and quantity"),
            ("run_id", "int", "u.run_id", "its run"),
            ("device", "text", "m.device", "product name of the device that was measured"),
            ("quantity", "text", "m.quantity", "a function such as F_DRAMThr, or a cost such as k_l2_load"),
            ("x", "float", "m.x", "place in the sweep of a function; null for a cost without one"),
            ("y", "float", "m.y", "share of the peak for a function; cycles an operation for a cost"),
            ("unit", "text", "m.unit", "unit of y as it came"),
            ("method", "text", "m.method", "how it was measured"),
            ("line", "int", "m.line", "line in the file, from 1"),
        ),
    ),
    "v1_devices": Shape(
        "A kind of GPU that runs or launches name.",
        f"devices d WHERE d.name <> '' OR NOT EXISTS (SELECT 1 FROM upload_devices x WHERE x.device_id = d.device_id)"
        " OR EXISTS (SELECT 1 FROM upload_devices x JOIN uploads v ON v.upload_id = x.upload_id"
        f" WHERE x.device_id = d.device_id AND NOT EXISTS (SELECT 1 FROM {_RUN_DEVICES.format('v.run_id')}"
        " AND e.compute_capability = d.compute_capability))",
        (
            ("device_id", "int", "d.device_id", "the device's number"),
            ("name", "text", "NULLIF(d.name, '')", "product name; null if the export does not say it"),
            ("compute_capability", "text", "NULLIF(d.compute_capability, '')", "such as 9.0; null if not said"),
            ("sms", "int", "d.sms", "streaming multiprocessors; null if not known"),
            ("facts", "text", "d.facts", "its other figures, as a JSON object"),
        ),
    ),
    "v1_kernels": Shape(
        "A distinct kernel.",
        "kernels k",
        (
            ("kernel_id", "int", "k.kernel_id", "the kernel's number"),
            ("kernel", "text", "k.kernel", "full name as printed"),
            ("kernel_short", "text", "k.kernel_short", "its name without types and parameters"),
        ),
    ),
}
