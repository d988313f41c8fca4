"""Base tables and views of source pages: lines and instructions of profiled kernels, with samples and counts.

The texts of a file are stored once in ``source_texts``, not in the dictionary of all files, so that they are deleted
with it. Rows of several files that show the same launch count once: ``source_kernels.repeats`` has the bits of the
kinds of rows that another file shows of it.
"""

from profsvc.store.schema.column_types import IDS_PER_UPLOAD, fields, integer, key, table
from profsvc.store.schema.view_definition import (
    FILE_COLUMNS,
    UPLOAD_ID_RANGE_SQL,
    ViewDefinition,
    for_every_file,
    view_columns,
)
from profsvc.store.schema.view_definition import text_of as dictionary_text

KIND_BITS = {"line": 1, "instruction": 2, "ptx": 4}
TEXT_COLUMNS = ("file", "source_text", "sass", "opcode", "address_space", "access_operation", "access_size")
COUNTS = {
    "samples": "samples of warps at this place",
    "samples_not_issued": "samples while the scheduler issued nothing",
    "instructions": "number of executed warp instructions",
    "thread_instructions": "the same, summed over active threads",
    "thread_instructions_on": "the same, summed over threads that the predicate leaves on",
    "divergent_branches": "number of branches that split a warp",
    "l2_sectors": "number of L2 sectors that its global accesses need",
    "ideal_l2_sectors": "the same if the threads of a warp accessed adjacent data",
    "local_l2_sectors": "number of L2 sectors that its accesses to local memory need",
    "shared_wavefronts": "number of passes through shared memory",
    "ideal_shared_wavefronts": "the same without bank conflicts",
}
"""Counts of a row: name and meaning."""

source_kernels = table(
    "source_kernels",
    key("source_id"),
    *fields("kernel_id int, launch_index int?"),
    integer("launch_id", index=True),
    *fields("reason text?, repeats int, kinds int, row_count int, samples int?, line int"),
)
source_lines = table(
    "source_lines",
    key("line_id"),
    integer("source_id", nullable=False, index=True),
    *fields("kind int, source_line int?, address int?, repeated int"),
    *(integer(f"{name}_id") for name in TEXT_COLUMNS),
    *(integer(name) for name in COUNTS),
    *fields("line int"),
)
source_stalls = table(
    "source_stalls",
    key("line_id"),
    key("reason_id"),
    *fields("samples int?, samples_not_issued int?"),
    clustered=True,
)
source_texts = table("source_texts", key("text_id"), *fields("text text"))

KEYS = {"source_kernels": "source_id", "source_lines": "line_id", "source_stalls": "line_id", "source_texts": "text_id"}
"""Tables of source pages and their keys, which contain the number of the upload."""


def _text(column: str) -> str:
    return f"(SELECT x.text FROM source_texts x WHERE x.text_id = e.{column}_id)"


_KIND = "CASE e.kind {} END".format(" ".join(f"WHEN {bit} THEN '{kind}'" for kind, bit in KIND_BITS.items()))
_OWN = f"uploads u JOIN source_kernels k ON k.source_id / {IDS_PER_UPLOAD} = u.upload_id AND k.source_id" + (
    f" {UPLOAD_ID_RANGE_SQL}"
)
_ONCE = "k.repeats & e.kind = 0"
_NAMES = (
    " LEFT JOIN launches l ON l.launch_id = k.launch_id LEFT JOIN shapes h ON h.shape_id = l.shape_id"
    " LEFT JOIN kernels n ON n.kernel_id = coalesce(h.kernel_id, k.kernel_id)"
)
_LINES = f"{_OWN} JOIN source_lines e ON e.source_id = k.source_id{{once}}{_NAMES}"
_STALLS = _LINES.replace(_NAMES, f" JOIN source_stalls s ON s.line_id = e.line_id{_NAMES}")
_OF_KERNEL = (
    *FILE_COLUMNS,
    *view_columns(
        "k",
        "launch_id | int | launch; null if the file does not say and none can be told by order and name",
        "source_id | int | number of the profiled launch in its source page",
        "kernel | text | n.kernel | name of the kernel",
        "kernel_short | text | n.kernel_short | kernel name without types and parameters",
    ),
)
_ADDRESS = "CASE WHEN e.address IS NOT NULL THEN {hex_address} END"
_PLACE = (
    *view_columns("e", "line_id | int | row number"),
    *_OF_KERNEL,
    *view_columns(
        "e",
        f"kind | text | {_KIND} | line (source line, with the sum of its instructions), instruction (SASS) or ptx",
        f"file | text | {_text('file')} | path of the source file; null if unknown",
        "source_line | int | line in the source file or PTX, from 1; null if unknown",
        f"address | text | {_ADDRESS} | address of the instruction",
        f"opcode | text | {_text('opcode')} | opcode with modifiers",
        "repeated | int | 1 for an instruction that an earlier row of the launch shows too, as inlined code has several"
        " lines; else 0",
    ),
)
_SHARE = "CASE WHEN k.samples > 0 THEN CAST(e.samples AS DOUBLE PRECISION) / k.samples END"
_THREADS = "CASE WHEN e.instructions > 0 THEN CAST(e.{} AS DOUBLE PRECISION) / e.instructions END"
# A warp that is selected issues its instruction: it does not stall.
_MAIN_STALL = (
    "(SELECT x.text FROM source_stalls s JOIN texts x ON x.text_id = s.reason_id WHERE s.line_id = e.line_id"
    " AND s.samples > 0 AND x.text <> 'Selected' ORDER BY s.samples DESC, x.text LIMIT 1)"
)

VIEW_DEFINITIONS: dict[str, ViewDefinition] = {
    "v1_source_kernels": ViewDefinition(
        "Launches of source pages, and the launches of the run that they are.",
        f"{_OWN}{_NAMES}",
        (
            *_OF_KERNEL,
            *view_columns(
                "k",
                "reason | text | why launch_id is null",
                "rows | int | k.row_count | number of rows in v1_source_lines_all",
                "samples | int | samples of all instructions, each counted once",
                "line | int | line in the file, from 1",
            ),
        ),
    ),
    "v1_source_lines": ViewDefinition(
        "Source lines and instructions of kernels, with samples and counts. Sum over rows of one kind, and over"
        " instructions with repeated = 0.",
        _LINES.format(once=f" AND {_ONCE}"),
        (
            *_PLACE,
            *view_columns(
                "e",
                f"source_text | text | {_text('source_text')} | text of the line; null if the report does not hold it",
                f"sass | text | {_text('sass')} | the instruction with predicate and operands",
                f"samples_fraction | float | {_SHARE} | share of the samples of the launch",
                f"main_stall | text | {_MAIN_STALL} | stall reason with most samples, except Selected",
                *((name, "int", f"e.{name}", meaning) for name, meaning in COUNTS.items()),
                f"threads_per_instruction | float | {_THREADS.format('thread_instructions')}"
                " | mean number of active threads of a warp instruction",
                f"threads_on_per_instruction | float | {_THREADS.format('thread_instructions_on')}"
                " | mean number of threads that the predicate leaves on",
                f"address_space | text | {_text('address_space')} | memory that it accesses",
                f"access_operation | text | {_text('access_operation')} | kind of access",
                f"access_size | text | {_text('access_size')} | access size per thread, in bits",
                "line | int | line in the file, from 1",
            ),
        ),
    ),
    "v1_source_stalls": ViewDefinition(
        "Samples of source lines and instructions per stall reason.",
        _STALLS.format(once=f" AND {_ONCE}"),
        (
            *_PLACE,
            *view_columns(
                "s",
                f"reason | text | {dictionary_text('s.reason_id')} | stall reason, by its name in Nsight Compute",
                "samples | int | samples with this reason; reasons without samples have no row",
                "samples_not_issued | int | samples while the scheduler issued nothing",
            ),
        ),
    ),
}

VIEW_DEFINITIONS |= {
    "v1_source_lines_all": for_every_file(VIEW_DEFINITIONS["v1_source_lines"], _LINES.format(once="")),
    "v1_source_stalls_all": for_every_file(VIEW_DEFINITIONS["v1_source_stalls"], _STALLS.format(once="")),
}
