"""The columns of the tidy tables: name, kind and meaning."""

from collections.abc import Mapping
from dataclasses import dataclass

DTYPES = {"int": "Int64", "float": "float64", "text": "object"}


@dataclass(frozen=True)
class Column:
    """One column: name, kind (int, float, text), whether it may be null, and what it means."""

    name: str
    kind: str
    nullable: bool
    meaning: str


def columns(*rows: str) -> tuple[Column, ...]:
    """Return columns, each written as ``name | kind | meaning``; a kind with a question mark may be null."""
    parsed = []
    for row in rows:
        name, kind, meaning = (part.strip() for part in row.split("|"))
        parsed.append(Column(name, kind.rstrip("?"), kind.endswith("?"), meaning))
    return tuple(parsed)


TABLES: Mapping[str, tuple[Column, ...]] = {
    "launches": columns(
        "launch_index | int | ordinal of the launch in the file, from 0; with the file it is the launch's identity",
        "source_id    | text? | the ID the tool printed for it",
        "correlation_id | int? | joins it to the call that launched it",
        "process_id   | int? | process that launched it",
        "process_name | text? | name of that process",
        "host         | text? | host name as printed",
        "kernel       | text | full name as printed",
        "device_index | int? | device ordinal as printed",
        "device       | text? | product name of the device",
        "compute_capability | text? | such as 9.0",
        "context      | int? | CUDA context",
        "stream       | int? | CUDA stream",
        "start_ns     | int? | start on the device clock",
        "duration_ns  | float? | execution time; null if the export does not hold it",
        "grid_x       | int? | blocks",
        "grid_y       | int? | blocks",
        "grid_z       | int? | blocks",
        "block_x      | int? | threads",
        "block_y      | int? | threads",
        "block_z      | int? | threads",
        "registers_per_thread | int? | registers; null where a raw page has them as a metric, or not at all",
        "shared_mem_static_bytes | int? | shared memory of a block, as compiled; null in the same way",
        "shared_mem_dynamic_bytes | int? | shared memory of a block, as asked for at launch; null in the same way",
        "line         | int | first line of the launch in the file, from 1",
    ),
    "metrics": columns(
        "launch_index | int? | the launch it belongs to; null for a value of the whole file or of a kernel",
        "kernel       | text? | the kernel of a value over all its launches; null where a launch or the file is meant",
        "invocations  | int? | how many launches, or readings of a board, that value is over",
        "statistic    | text? | which of them it is: avg, min, max or sum; null for the only one",
        "section      | text? | section of the page, where the tool prints one",
        "metric       | text | the tool's own name of the metric, or its label on a details page",
        "raw_text     | text | the cell as it came",
        "unit         | text? | the unit as it came",
        "value        | float? | the number in si_unit; null if the cell is not a number",
        "si_unit      | text? | unit of value",
        "reason       | text? | why value is null",
        "line         | int | line of the cell in the file, from 1",
    ),
    "transfers": columns(
        "kind         | text | HtoD, DtoH, DtoD, PtoP, HtoH, memset, array copies, unified memory traffic",
        "start_ns     | int? | start on the device clock",
        "duration_ns  | float? | null where the tool prints none",
        "bytes        | int? | bytes moved or set",
        "source_memory | text? | kind of memory it came from, as printed",
        "target_memory | text? | kind of memory it went to, as printed",
        "device_index | int? | device ordinal as printed",
        "device       | text? | product name of the device",
        "process_id   | int? | process that asked for it",
        "context      | int? | CUDA context",
        "stream       | int? | CUDA stream",
        "line         | int | line in the file, from 1; row number in a database",
    ),
    "api_calls": columns(
        "name         | text | the call, as printed",
        "start_ns     | int? | start on the host clock of the tool",
        "duration_ns  | float? | null where the tool prints none",
        "process_id   | int? | calling process",
        "thread_id    | int? | calling thread",
        "correlation_id | int? | joins it to what it launched",
        "line         | int | line in the file, from 1; row number in a database",
    ),
    "ranges": columns(
        "name         | text | name of the range or mark",
        "start_ns     | int? | start on the host clock of the tool, UTC where the fact clock says so",
        "duration_ns  | float? | null for a mark or an open range",
        "domain       | text? | domain or category",
        "process_id   | int? | process",
        "thread_id    | int? | thread",
        "active_sms   | int? | SMs that it kept busy, as a log of marks says",
        "launches     | int? | launches in it, as a log of marks says",
        "line         | int | line in the file, from 1; row number in a database",
    ),
    "kernel_summaries": columns(
        "category     | text | kernel, memory, api, os (calls of the system), range, domain: what the row sums up",
        "kernel       | text | name of the kernel, copy, call or range, as printed",
        "calls        | int | how many",
        "total_ns     | float? | sum of their durations; null for a row of sizes",
        "mean_ns      | float? | mean",
        "min_ns       | float? | shortest",
        "max_ns       | float? | longest",
        "total_bytes  | float? | sum of their sizes, for a row of sizes",
        "device_index | int? | device ordinal, where the row is about one",
        "report       | text? | report of nsys stats that has the row; several of them may sum up the same events",
        "line         | int | line in the file, from 1",
    ),
    "sensors": columns(
        "sensor_index | int | ordinal of the sensor in the file, from 0",
        "quantity     | text | power, energy, temperature, clock, utilization, memory, voltage, current, limit, state",
        "name         | text | the channel's own name as printed, such as power.draw.instant",
        "unit         | text | unit of the values, in its name's sense: W, J, degC, Hz, 1, byte, V, A, ...",
        "gpu_index    | int? | GPU the channel is of",
        "device       | text? | product name or UUID of it",
        "x_mm         | float? | place on the die",
        "y_mm         | float? | place on the die",
        "quality      | text? | data-quality warning with its value: stuck, polled faster than it updates, ...",
        "line         | int? | line that names the channel, from 1",
    ),
    "samples": columns(
        "sensor_index | int | the sensor",
        "sample_index | int | ordinal of the reading in the file",
        "time_ns      | int? | UTC since 1970; null where the file's clock has no known zone",
        "local_ns     | int? | the file's own clock as if it were UTC, where its zone is unknown",
        "elapsed_ns   | int? | since the first reading of the file",
        "value        | float? | in the sensor's unit; null if there is none",
        "reason       | text? | why value is null",
        "line         | int | line in the file, from 1",
    ),
    "rules": columns(
        "launch_index | int | the launch it belongs to",
        "section      | text? | section of the page",
        "rule         | text | the tool's name of the rule",
        "rule_type    | text? | OPT, WRN or INF as printed",
        "kind         | text? | global: share of the run time saved; local: share of a unit's inefficiency, not a time",
        "estimated_saving_fraction | float? | the estimate as printed, divided by 100",
        "estimated_speedup | float? | 1 / (1 - saving) for kind global, else null",
        "message      | text | the rule's words",
        "focus_metrics | text? | metrics that it names, as JSON: name, value, severity, info",
        "line         | int | line in the file, from 1",
    ),
    "source_kernels": columns(
        "source_index | int | ordinal of the profiled launch in the file, from 0",
        "launch_index | int? | that launch, where the same file has launches; null on a page that does not number them",
        "kernel       | text | name as printed",
        "line         | int | first line of the launch in the file, from 1",
    ),
    "source_lines": columns(
        "source_index | int | the profiled launch",
        "line_index   | int | ordinal of the row in the file, from 0",
        "kind         | text | line (a source line with the sum of its instructions), instruction (SASS) or ptx",
        "file         | text? | path of the source file; null for an instruction without a source line",
        "source_line  | int? | line in that file, or in the PTX, from 1",
        "source_text  | text? | text of that line; null if the report does not hold it",
        "address      | int? | address of the instruction",
        "sass         | text? | the instruction, with its predicate and operands",
        "opcode       | text? | its opcode with modifiers, such as LDG.E.64",
        "repeated     | int | 1 for an instruction that an earlier row of the launch shows too, else 0",
        "samples      | int? | samples of warps at this place",
        "samples_not_issued | int? | those while the scheduler issued nothing",
        "instructions | int? | warp instructions executed",
        "thread_instructions | int? | the same summed over active threads",
        "thread_instructions_on | int? | the same summed over threads that the predicate leaves on",
        "divergent_branches | int? | branches that split a warp",
        "l2_sectors   | int? | sectors of L2 that its global accesses need",
        "ideal_l2_sectors | int? | the same if the threads of a warp accessed adjacent data",
        "local_l2_sectors | int? | sectors of L2 that its accesses to local memory need",
        "shared_wavefronts | int? | passes through shared memory",
        "ideal_shared_wavefronts | int? | the same without bank conflicts",
        "address_space | text? | memory that it accesses, such as Global",
        "access_operation | text? | such as Load or Atomic",
        "access_size  | text? | bits of a thread",
        "line         | int | line in the file, from 1",
    ),
    "source_stalls": columns(
        "line_index   | int | the row of source_lines",
        "reason       | text | stall reason, by its name in Nsight Compute, such as Long Scoreboard",
        "samples      | int? | samples of warps with it",
        "samples_not_issued | int? | those while the scheduler issued nothing",
        "line         | int | line in the file, from 1",
    ),
    "characterizations": columns(
        "device       | text | product name of the device that was measured",
        "quantity     | text | a function such as F_DRAMThr, or F_ArithThr:fp32 of one unit; a cost such as k_l2_load",
        "x            | float? | place in the sweep of a function; null for a cost measured without one",
        "y            | float | share of the peak for a function; cycles an operation for a cost",
        "unit         | text? | unit of y as it came",
        "method       | text? | how it was measured",
        "line         | int | line in the file, from 1",
    ),
    "rejects": columns(
        "line         | int | first line of the rejected record, from 1",
        "lines        | int | how many lines it spans; 0 where another record has its line",
        "reason       | text | why it was rejected",
        "text         | text | its first 2000 characters",
    ),
}
