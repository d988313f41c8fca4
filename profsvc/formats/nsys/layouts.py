"""The supported reports of ``nsys stats``: the columns that identify each, and the units of its columns."""

import re
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache

from profsvc.errors import BrokenInputError
from profsvc.specs import units

TOOL = "Nsight Systems"
_UNIT = re.compile(r"(.*?) ?\(([^()]*)\)")
_REPORT_LINE = re.compile(
    r"(?:# )?(?:Processing \[[^\]]*\] with|Running) \[(?:[^\] ]*[/\\])?(?P<script>[A-Za-z0-9_]+)"
    r"|\[[0-9]{1,4}/[0-9]{1,4}\] Executing '(?P<executed>[A-Za-z0-9_]+)"
    r"|\s*\*\* .*\((?P<titled>[a-z0-9_]+)(?::[^()]*)?\):\s*$"
)
_FILE_LINE = re.compile(r"(?:# )?(?:Processing \[(?P<processed>[^\]]*)\] with|Running \[\S+ (?P<run>[^\]]*)\])")
_ALIASES = {
    "Average": "Avg",
    "Minimum": "Min",
    "Maximum": "Max",
    "Num Calls": "Calls",
    "CorrID": "CorrId",
    "Pid": "PID",
    "Tid": "TID",
}
# Counts whose names identify a report.
_COUNTS = {"Operations": "Count"}
INTEGER_COLUMNS = {
    "CorrId",
    "GrdX",
    "GrdY",
    "GrdZ",
    "BlkX",
    "BlkY",
    "BlkZ",
    "Reg/Trd",
    "Ctx",
    "Strm",
    "PID",
    "TID",
    "DevId",
}
INTEGER_COLUMNS |= {"Instances", "Count", "Calls"}
KERNEL_TIME_COLUMNS = ("Kernel Start", "Kernel Dur", "API Start", "API Dur", "Queue Start", "Queue Dur", "Total Dur")
TIME_COLUMNS = ("Start", "End", "Duration")
_NUMBERS = INTEGER_COLUMNS | {
    *TIME_COLUMNS,
    *KERNEL_TIME_COLUMNS,
    "Total Time",
    "Total",
    "Time",
    "Avg",
    "Min",
    "Max",
    "Med",
    "StdDev",
}
_NUMBERS |= {"StcSMem", "DymSMem", "Bytes", "Throughput"}
GPU_TRACE, API_TRACE, NVTX_TRACE = "cuda_gpu_trace", "cuda_api_trace", "nvtx_trace"
KERNEL_GRID_SUM = "cuda_gpu_kern_gb_sum"
EXEC_TRACE, MPI_TRACE = "cuda_kern_exec_trace", "mpi_event_trace"
# A header starts the first of these reports whose columns it has.
REPORTS: list[tuple[str, set[str]]] = [
    (GPU_TRACE, {"Start", "Duration", "CorrId", "GrdX", "BlkX", "Strm", "Name"}),
    (API_TRACE, {"Start", "Duration", "Name", "Result", "CorrId", "PID", "TID"}),
    *((NVTX_TRACE, {*TIME_COLUMNS, "Name", "PID", own}) for own in ("RangeId", "NumChild", "StartTID")),
    (EXEC_TRACE, {"API Start", "Kernel Start", "Kernel Dur", "DevId", "Kernel Name"}),
    (MPI_TRACE, {*TIME_COLUMNS, "Event", "PID", "TID"}),
    ("cuda_gpu_sum", {"Total Time", "Instances", "Category", "Operation"}),
    ("nvtx_sum", {"Total Time", "Instances", "Range"}),
    ("mpi_event_sum", {"Total Time", "Instances", "Source", "Name"}),
    (KERNEL_GRID_SUM, {"Total Time", "Instances", "GridXYZ", "BlockXYZ", "Name"}),
    ("cuda_gpu_kern_sum", {"Total Time", "Instances", "Name"}),
    ("cuda_api_sum", {"Total Time", "Calls", "Name"}),
    ("cuda_gpu_mem_time_sum", {"Total Time", "Count", "Operation"}),
    ("cuda_gpu_mem_size_sum", {"Total", "Count", "Operation"}),
    # The console output of 2019 and 2020 names the operation column Name.
    ("gpumemtimesum", {"Total Time", "Operations", "Name"}),
    ("gpumemsizesum", {"Total", "Operations", "Name"}),
    ("openacc_sum or openmp_sum", {"Total Time", "Count", "Name"}),
]
# Unsupported reports: name, identifying columns, reason, and the reports to use instead.
UNSUPPORTED_REPORTS: list[tuple[str, set[str], str, str]] = [
    ("nvtx_kern_sum", {"NVTX Range", "Kern Inst", "Kernel Name"},
     "it counts a kernel once for each range around it", "cuda_gpu_kern_sum,nvtx_sum"),
    ("nvtx_gpu_proj_sum", {"Range", "Total Proj Time", "Range Instances"},
     "its times are spans that may contain idle time", "cuda_gpu_trace,nvtx_pushpop_trace"),
    ("nvtx_gpu_proj_trace", {"Name", "Projected Start", "Projected Duration"},
     "its times are spans that may contain idle time", "cuda_gpu_trace,nvtx_pushpop_trace"),
    ("cuda_kern_exec_sum", {"Count", "QCount", "Kernel Name"},
     "it holds means without sums", "cuda_gpu_kern_sum,cuda_api_sum"),
    ("um_total_sum", {"Total HtoD Migration Size", "Total CPU Page Faults"},
     "it names no copies", "cuda_gpu_mem_size_sum,cuda_gpu_mem_time_sum"),
    ("um_sum", {"Virtual Address", "HtoD Migration Size"},
     "it holds only the addresses with the most copies", "cuda_gpu_mem_size_sum,cuda_gpu_mem_time_sum"),
    ("um_cpu_page_faults_sum", {"CPU Page Faults", "CPU Instruction Address"},
     "page faults of the host are not device work", "cuda_gpu_mem_size_sum"),
]  # fmt: skip
_COLUMNS_OF_TITLE_UNIT = ("Total Time", "Total", "Avg", "Med", "Min", "Max", "StdDev")


@cache
def unit_factor(unit: str | None, si_unit: str) -> Decimal | None:
    """Return the factor from ``unit`` to ``si_unit``; None if ``unit`` has another dimension.

    >>> unit_factor("ms", "s"), unit_factor("MB", "byte"), unit_factor("MB", "s")
    (Decimal('0.001'), Decimal('1000000'), None)
    """
    known = units("nsys").get(unit or "?")
    return Decimal(f"{known.factor:.15g}") if known and known.si_unit == si_unit else None


def parse_column(cell: str) -> tuple[str, str | None]:
    """Return the name (as in new versions) and the unit of a column, from its cell in the header.

    >>> parse_column("Duration (ns)"), parse_column("Average")
    (('Duration', 'ns'), ('Avg', None))
    """
    match = _UNIT.fullmatch(cell.strip())
    name = (match[1] if match else cell).strip()
    return _ALIASES.get(name, name), match[2] if match else None


@dataclass(eq=False)
class Layout:
    """The places and units of the columns of a report; ``unit`` is the unit in the title above the header."""

    header: list[str]
    unit: str = ""
    report: str = ""
    places: dict[str, int] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the columns."""
        for place, cell in enumerate(self.header):
            name, unit = parse_column(cell)
            self.places.setdefault(name, place)
            if name in _COUNTS:
                self.places.setdefault(_COUNTS[name], place)
            if unit is not None:
                self.units.setdefault(name, unit)
        if self.unit:
            self.units |= {
                name: self.unit for name in _COLUMNS_OF_TITLE_UNIT if name in self.places and name not in self.units
            }
        self.report = next((name for name, needs in REPORTS if needs <= set(self.places)), "")
        self.numeric = sorted(self.places[name] for name in _NUMBERS if name in self.places)
        exact = [name for name in (*TIME_COLUMNS, *KERNEL_TIME_COLUMNS, "Total Time") if self.units.get(name) == "ns"]
        self.integers = sorted({self.places[name] for name in (*INTEGER_COLUMNS, *exact) if name in self.places})

    def check(self, line: int) -> None:
        """Raise `BrokenInputError` if a time column has no known unit."""
        needed = ("Start", "Duration", "Kernel Start", "Kernel Dur", "Total Time")
        for name in filter(self.places.__contains__, needed):
            if unit_factor(self.units.get(name), "s") is None:
                raise BrokenInputError(
                    f"line {line}: the column {self.header[self.places[name]]!r} has no known time unit "
                    "(ns, us, ms or s), so its values are ambiguous; export again with a newer nsys stats"
                )


def layout_of(header: list[str], unit: str = "") -> Layout | None:
    """Return the layout of the report with these columns; None for an unsupported report.

    >>> layout_of(["Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Name"]).report
    'cuda_gpu_kern_sum'
    """
    layout = Layout(header, unit)
    return layout if layout.report else None


def unsupported_report(header: list[str]) -> str | None:
    """Return why a report with these columns is unsupported, and what to export instead; None if unknown.

    >>> unsupported_report(["CPU Page Faults", "CPU Instruction Address"])[:40]
    'um_cpu_page_faults_sum is not read: page'
    """
    names = {parse_column(cell)[0] for cell in header}
    for report, needs, why, instead in UNSUPPORTED_REPORTS:
        if needs <= names:
            return f"{report} is not read: {why}; export again with nsys stats --format csv -r {instead}"
    return None


def report_named_by(line: str) -> str | None:
    """Return the name of the report that a line of the tool announces; None for other lines.

    >>> report_named_by(" ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):")
    'cuda_gpu_kern_sum'
    >>> report_named_by("[5/8] Executing 'gpukernsum' stats report")
    'gpukernsum'
    """
    match = _REPORT_LINE.match(line)
    return match[str(match.lastgroup)] if match else None


def file_named_by(line: str) -> str | None:
    """Return the report file that a line of the tool names; None for other lines.

    >>> file_named_by("Processing [a.sqlite] with [/opt/nsys/reports/cuda_api_sum.py]... ")
    'a.sqlite'
    """
    match = _FILE_LINE.match(line)
    return match[str(match.lastgroup)] if match else None
