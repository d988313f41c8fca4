"""The passes of a recording: a trace with the power log beside it, then a profile; each runs the program once."""

import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from profsvc.errors import InputError
from profsvc.microbench.power_log import board_log
from profsvc.microbench.toolkit import last_words, run_tool
from profsvc.recording.energy_counter import logging_energy
from profsvc.recording.tools import Tools

Report = Callable[[str], None]
# Idle time that is logged before and after the program.
IDLE_S = 2.0
DENIED = "ERR_NVGPUCTRPERM"
DENIED_HELP = (
    "the driver reserves performance counters for administrators; run it as root, or see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)
CLASSES = ("bit", "conversion", "control", "fp16", "fp32", "fp64", "integer", "memory", "misc", "uniform")
WIDTHS = (8, 16, 32, 64, 128)
# What proves more causes of lost time than the full set does.
METRICS = (
    *(f"smsp__sass_thread_inst_executed_op_{one}_pred_on.sum" for one in CLASSES),
    *(f"smsp__sass_inst_executed_op_memory_{bits}b.sum" for bits in WIDTHS),
    "sm__inst_executed_pipe_xu.sum",
    "smsp__thread_inst_executed_pipe_xu_pred_on.sum",
)
# By default nsys records a CUDA graph as a whole, and its kernels are missing.
TRACE = (
    *("profile", "--trace=cuda,nvtx", "--cuda-graph-trace=node", "--sample=none", "--cpuctxsw=none"),
    "--force-overwrite=true",
)
# What makes the report of what nsys collected; it lies next to the folder of nsys.
IMPORTERS = ("host-linux-*/QdstrmImporter", "linux-desktop-*/QdstrmImporter")
SECONDS_TO_IMPORT = 600.0
TRACE_EXPORT = ("export", "--type=sqlite", "--force-overwrite=true")
PROFILE = (
    *("--set", "full", "--import-source", "yes", "--clock-control", "none", "--target-processes", "all"),
    "--force-overwrite",
)
PAGES = {
    "raw.csv": ("--page", "raw", "--print-units", "base"),
    "details.csv": ("--page", "details"),
    "source.csv": ("--page", "source", "--print-source", "cuda,sass"),
    "machine_code.csv": ("--page", "source", "--print-source", "sass"),
}
NO_LINES = b"==WARNING== No lineinfo available"
# A page with source lines lacks the kernels without them, such as those of libraries.
ONLY_IF_INCOMPLETE = {"machine_code.csv": "source.csv"}


class Plan(NamedTuple):
    """What to record of a program: how many launches are profiled, of which kernels, and whether power is logged."""

    program: tuple[str, ...]
    launches: int = 100
    kernel: str = ""
    power: bool = True


class Recording(NamedTuple):
    """The exports, in the order to upload them, and what could not be recorded, with why."""

    files: list[Path]
    problems: list[str]


def commands(tools: Tools, plan: Plan, folder: Path) -> dict[str, list[str]]:
    """Return the command of each pass by its name: ``trace`` or ``program``, then ``profile``.

    >>> found = commands(Tools("nvidia-smi", "ncu", None, "0"), Plan(("./app", "-n", "3")), Path("out"))
    >>> list(found), found["program"]
    (['program', 'profile'], ['./app', '-n', '3'])
    """
    found: dict[str, list[str]] = {}
    if tools.nsys:
        found["trace"] = [tools.nsys, *TRACE, f"--output={folder / 'trace'}", *plan.program]
    elif plan.power:
        found["program"] = list(plan.program)
    if tools.ncu:
        chosen = ["--launch-count", str(plan.launches)] if plan.launches else []
        chosen += ["--kernel-name", f"regex:{plan.kernel}"] if plan.kernel else []
        files = ["--log-file", str(folder / "ncu.log"), "--export", str(folder / "report")]
        found["profile"] = [tools.ncu, *PROFILE, "--metrics", ",".join(METRICS), *chosen, *files, *plan.program]
    return found


def record(tools: Tools, plan: Plan, folder: Path, report: Report) -> Recording:
    """Run every pass and return the exports in ``folder``.

    Raise `InputError` if the program cannot be run or ends with an error in its first pass, or if nothing was recorded.
    """
    files: list[Path] = []
    problems: list[str] = []
    for name, command in commands(tools, plan, folder).items():
        if name == "profile":
            files += _profile(tools, command, folder, report, problems, is_first=not files and not problems)
        else:
            files += _trace(tools, plan, command, folder, report, problems)
    if not files:
        raise InputError(f"nothing was recorded: {'; '.join(problems)}")
    return Recording(files, problems)


def _trace(
    tools: Tools, plan: Plan, command: Sequence[str], folder: Path, report: Report, problems: list[str]
) -> list[Path]:
    """Run the program under nsys, or alone without it, and log the board meanwhile."""
    smi, energy = folder / "smi.csv", folder / "nvml_energy.csv"
    what = " and ".join([*(["trace"] if tools.nsys else []), *(["power"] if plan.power else [])])
    report(f"recording {what}: {shlex.join(plan.program)}")
    with ExitStack() as held:
        if plan.power:
            log = held.enter_context(smi.open("w", encoding="utf-8"))
            held.enter_context(board_log(tools.nvidia_smi, tools.gpus, log))
            held.enter_context(logging_energy(energy, tools.gpus))
            time.sleep(IDLE_S)
        status = _run(command)
        if plan.power:
            time.sleep(IDLE_S)
    collected, result = folder / "trace.qdstrm", folder / "trace.nsys-rep"
    unfinished = bool(tools.nsys) and collected.exists() and not result.exists()
    if status and not unfinished:
        raise InputError(f"{plan.program[0]} ended with exit status {status}, so nothing is uploaded")
    found = [file for file in (smi, energy) if file.exists() and _lines(file) > 1]
    if plan.power and smi not in found:
        problems.append("power: nvidia-smi wrote no readings")
    if tools.nsys:
        why = _import(tools.nsys, collected, result) if unfinished else ""
        database = folder / "trace.sqlite"
        if result.exists():
            _run([tools.nsys, *TRACE_EXPORT, f"--output={database}", str(result)], quiet=True)
        if database.exists():
            return [database, *found]
        problems.append(f"trace: {why or 'nsys wrote no report that it can export'}")
    return found


def _import(nsys: str, collected: Path, result: Path) -> str:
    """Make the report that nsys itself could not make of what it collected, or return why there is none."""
    folders = (Path(nsys).resolve().parent, Path(nsys).resolve().parent.parent)
    importer = next((path for place in folders for form in IMPORTERS for path in sorted(place.glob(form))), None)
    if importer is None:
        return f"nsys collected {collected.name} but its QdstrmImporter, which makes the report, is not installed"
    done = run_tool([str(importer), "-i", str(collected), "-o", str(result)], SECONDS_TO_IMPORT)
    if result.exists():
        return ""
    return (
        f"nsys collected {collected.name}, and {importer.name}, which makes the report, says "
        f"{last_words(done.stdout + done.stderr)!r}; a library that it lacks comes with the distribution "
        f"(libdw.so.1 with libdw1 or elfutils-libs)"
    )


def _profile(
    tools: Tools, command: list[str], folder: Path, report: Report, problems: list[str], *, is_first: bool
) -> list[Path]:
    """Run the program under ncu and export the pages of its report."""
    assert tools.ncu is not None
    report("recording profile: each launch is repeated to read all counters")
    result, log = folder / "report.ncu-rep", folder / "ncu.log"
    status = _run(command)
    text = _text(log)
    if not result.exists() and DENIED not in text and "--metrics" in command:
        place = command.index("--metrics")  # an older version or device does not have one of them
        status = _run([*command[:place], *command[place + 2 :]])
        text = _text(log)
    if not result.exists():
        why = DENIED_HELP if DENIED in text else _last_line(text) or f"ncu ended with exit status {status}"
        if is_first and status and not text:
            raise InputError(f"the program ended with exit status {status}, so nothing is uploaded")
        problems.append(f"profile: {why}")
        return []
    found: list[Path] = []
    whole: set[str] = set()
    for name, options in PAGES.items():
        if ONLY_IF_INCOMPLETE.get(name) in whole:
            continue
        file = folder / name
        with file.open("wb") as stream:
            _run([tools.ncu, "--import", str(result), "--csv", *options], quiet=True, output=stream.fileno())
        if _lines(file) > 1:
            found.append(file)
            whole.update(() if _lacks_kernels(file) else (name,))
    if not found:
        problems.append("profile: the report has no launches; check --kernel")
    return found


def _run(command: Sequence[str], *, quiet: bool = False, output: int | None = None) -> int:
    """Run a command to its end, with the terminal of this one unless ``quiet``, and return its exit status."""
    silent = subprocess.DEVNULL if quiet else None
    try:
        done = subprocess.run(
            command, check=False, stdout=silent if output is None else output, stderr=silent, stdin=silent
        )
    except OSError as error:
        raise InputError(f"cannot run {command[0]}: {error.strerror}") from None
    return done.returncode


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if "ERROR" in line), "")


def _lines(file: Path) -> int:
    """Return how many lines a file has beside the banners of ncu."""
    with file.open("rb") as stream:
        return sum(not line.startswith(b"==") for line in stream)


def _lacks_kernels(file: Path) -> bool:
    with file.open("rb") as stream:
        return any(line.startswith(NO_LINES) for line in stream)
