"""The reports of ``nsys stats`` that are taken: the columns that tell each, and the units of its columns."""

import re
from dataclasses import dataclass, field

from profsvc.errors import BrokenInputError
from profsvc.formats.nsys import factor_of

_UNIT = re.compile(r"(.*?) ?\(([^()]*)\)")
_BEGUN = re.compile(
    r"(?:# )?(?:Processing \[[^\]]*\] with|Running) \[(?:[^\] ]*[/\\])?(?P<script>[A-Za-z0-9_]+)"
    r"|\[[0-9]{1,4}/[0-9]{1,4}\] Executing '(?P<executed>[A-Za-z0-9_]+)"
    r"|\s*\*\* .*\((?P<titled>[a-z0-9_]+)(?::[^()]*)?\):\s*$"
)
_ALIASES = {
    "Average": "Avg",
    "Minimum": "Min",
    "Maximum": "Max",
    "Num Calls": "Calls",
    "CorrID": "CorrId",
    "Pid": "PID",
    "Tid": "TID",
}
# Counts that tell a report by what they are called.
_COUNTS = {"Operations": "Count"}
WHOLE = {"CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd", "Ctx", "Strm", "PID", "TID", "DevId"}
WHOLE |= {"Instances", "Count", "Calls"}
KERNEL_TIMES = ("Kernel Start", "Kernel Dur", "API Start", "API Dur", "Queue Start", "Queue Dur", "Total Dur")
TIMES = ("Start", "End", "Duration")
_NUMBERS = WHOLE | {*TIMES, *KERNEL_TIMES, "Total Time", "Total", "Time", "Avg", "Min", "Max", "Med", "StdDev"}
_NUMBERS |= {"StcSMem", "DymSMem", "Bytes", "Throughput"}
GPU_TRACE, API_TRACE, NVTX_TRACE = "cuda_gpu_trace", "cuda_api_trace", "nvtx_trace"
EXEC_TRACE, MPI_TRACE = "cuda_kern_exec_trace", "mpi_event_trace"
# The first report whose columns a header has is the one that it begins.
REPORTS: list[tuple[str, set[str]]] = [
    (GPU_TRACE, {"Start", "Duration", "CorrId", "GrdX", "BlkX", "Strm", "Name"}),
    (API_TRACE, {"Start", "Duration", "Name", "Result", "CorrId", "PID", "TID"}),
    *((NVTX_TRACE, {*TIMES, "Name", "PID", own}) for own in ("RangeId", "NumChild", "StartTID")),
    (EXEC_TRACE, {"API Start", "Kernel Start", "Kernel Dur", "DevId", "Kernel Name"}),
    (MPI_TRACE, {*TIMES, "Event", "PID", "TID"}),
    ("cuda_gpu_sum", {"Total Time", "Instances", "Category", "Operation", "Avg"}),
    ("nvtx_sum", {"Total Time", "Instances", "Range", "Avg"}),
    ("mpi_event_sum", {"Total Time", "Instances", "Source", "Name", "Avg"}),
    ("cuda_gpu_kern_sum", {"Total Time", "Instances", "Name", "Avg"}),
    ("cuda_api_sum", {"Total Time", "Calls", "Name", "Avg"}),
    ("cuda_gpu_mem_time_sum", {"Total Time", "Count", "Operation", "Avg"}),
    ("cuda_gpu_mem_size_sum", {"Total", "Count", "Operation", "Avg"}),
    # The console of 2019 and 2020 calls the operation Name.
    ("gpumemtimesum", {"Total Time", "Operations", "Name", "Avg"}),
    ("gpumemsizesum", {"Total", "Operations", "Name", "Avg"}),
    ("openacc_sum or openmp_sum", {"Total Time", "Count", "Name", "Avg"}),
]
# Reports that are not taken, by columns that tell them; why, and the report that says the same or more.
LEFT: list[tuple[str, set[str], str, str]] = [
    ("nvtx_kern_sum", {"NVTX Range", "Kern Inst", "Kernel Name"},
     "it counts a kernel once for each range around it", "cuda_gpu_kern_sum,nvtx_sum"),
    ("nvtx_gpu_proj_sum", {"Range", "Total Proj Time", "Range Instances"},
     "its times are of spans, in which nothing need run", "cuda_gpu_trace,nvtx_pushpop_trace"),
    ("nvtx_gpu_proj_trace", {"Name", "Projected Start", "Projected Duration"},
     "its times are of spans, in which nothing need run", "cuda_gpu_trace,nvtx_pushpop_trace"),
    ("cuda_kern_exec_sum", {"Count", "QCount", "Kernel Name"},
     "it holds means without sums", "cuda_gpu_kern_sum,cuda_api_sum"),
    ("um_total_sum", {"Total HtoD Migration Size", "Total CPU Page Faults"},
     "it names no copies", "cuda_gpu_mem_size_sum,cuda_gpu_mem_time_sum"),
    ("um_sum", {"Virtual Address", "HtoD Migration Size"},
     "it holds only the addresses with the most copies", "cuda_gpu_mem_size_sum,cuda_gpu_mem_time_sum"),
    ("um_cpu_page_faults_sum", {"CPU Page Faults", "CPU Instruction Address"},
     "page faults of the host are no work of the device", "cuda_gpu_mem_size_sum"),
]  # fmt: skip
_OF_THE_UNIT = ("Total Time", "Total", "Avg", "Med", "Min", "Max", "StdDev")


def column_of(cell: str) -> tuple[str, str | None]:
    """Return the name of a column, as new versions call it, and its unit, from its cell in the header.

    >>> column_of("Duration (ns)"), column_of("Average")
    (('Duration', 'ns'), ('Avg', None))
    """
    match = _UNIT.fullmatch(cell.strip())
    name = (match[1] if match else cell).strip()
    return _ALIASES.get(name, name), match[2] if match else None


@dataclass(eq=False)
class Layout:
    """The columns of one report: where each stands, and its unit; ``unit`` is that of a title above the header."""

    header: list[str]
    unit: str = ""
    report: str = ""
    places: dict[str, int] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the columns."""
        for place, cell in enumerate(self.header):
            name, unit = column_of(cell)
            self.places.setdefault(name, place)
            if name in _COUNTS:
                self.places.setdefault(_COUNTS[name], place)
            if unit is not None:
                self.units.setdefault(name, unit)
        if self.unit:
            self.units |= {name: self.unit for name in _OF_THE_UNIT if name in self.places and name not in self.units}
        self.report = next((name for name, needs in REPORTS if needs <= set(self.places)), "")
        self.numeric = sorted(self.places[name] for name in _NUMBERS if name in self.places)
        exact = [name for name in (*TIMES, *KERNEL_TIMES, "Total Time") if self.units.get(name) == "ns"]
        self.integers = sorted({self.places[name] for name in (*WHOLE, *exact) if name in self.places})

    def check(self, line: int) -> None:
        """Refuse a report whose times have no unit that we know."""
        needed = ("Start", "Duration", "Kernel Start", "Kernel Dur", "Total Time")
        for name in filter(self.places.__contains__, needed):
            if factor_of(self.units.get(name), "s") is None:
                raise BrokenInputError(
                    f"line {line}: the header is {self.header[self.places[name]]!r}, without a unit of time that is "
                    "known (ns, us, ms or s), so its values could be anything; export again with a newer nsys stats"
                )


def layout_of(header: list[str], unit: str = "") -> Layout | None:
    """Return the layout of the report with these columns; None if it is not one that is taken.

    >>> layout_of(["Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Name"]).report
    'cuda_gpu_kern_sum'
    """
    layout = Layout(header, unit)
    return layout if layout.report else None


def left(header: list[str]) -> str | None:
    """Return why a report with these columns is not taken, and what to print instead; None if it is not known.

    >>> left(["CPU Page Faults", "CPU Instruction Address"])[:40]
    'um_cpu_page_faults_sum is not read: page'
    """
    names = {column_of(cell)[0] for cell in header}
    for report, needs, why, instead in LEFT:
        if needs <= names:
            return f"{report} is not read: {why}; export again with nsys stats --format csv -r {instead}"
    return None


def begun(line: str) -> str | None:
    """Return the report that a line of the tool says it begins.

    >>> begun(" ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):"), begun("[5/8] Executing 'gpukernsum' stats report")
    ('cuda_gpu_kern_sum', 'gpukernsum')
    """
    match = _BEGUN.match(line)
    return match[str(match.lastgroup)] if match else None
