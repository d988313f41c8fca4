"""Measures a GPU: builds and runs the microbenchmarks, inspects their code, and writes the characterization."""

import csv
import io
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from profsvc.errors import ServiceError
from profsvc.microbench.machine_code import unexpected_code
from profsvc.microbench.profiler_counters import l2_percent
from profsvc.microbench.raw import read_raw
from profsvc.microbench.rows import Rows, characterization_rows
from profsvc.microbench.toolkit import Device, Tools, build, device_environment, find_device, find_tools

VERSION = 1
COLUMNS = ("device", "quantity", "x", "y", "unit", "method")
SECONDS_A_PROGRAM = 180
BUSY_PERCENT = 5
MAX_WORDS = 300
Report = Callable[[str], None]


class Measured(NamedTuple):
    """A characterization: the device, how many quantities, the text of the file and the raw output behind it."""

    device: str
    measured: int
    text: str
    raw: str


def characterize(folder: Path, report: Report, number: int = 0, created: str = "") -> Measured:
    """Measure the GPU with this number.

    ``folder`` keeps the compiled programs; ``created`` says when and by what the file is written. Raise `InputError`
    without a compiler or a GPU, `ServiceError` if no benchmark ends well.
    """
    tools = find_tools()
    device = find_device(tools, number)
    notes = {"nvidia-smi": f"driver {device.driver}, {device.temperature} C, power limit {device.power_limit} W"}
    if _is_busy(device):
        notes["warning"] = f"the GPU was {device.utilization} % busy before the first benchmark; rates may be too low"
        report(notes["warning"])
    report(f"{device.name}, compute capability {device.compute_capability}: compile")
    programs = build(tools, device.architecture, folder)
    unexpected = _inspect(tools, programs, notes)
    outputs = []
    for name, program in programs.items():
        begin = time.monotonic()
        text, problem = _run(program, number)
        outputs.append(text)
        if problem:
            notes[f"{name} failed"] = problem
        report(f"{name}: {problem or f'{_points(text)} points in {time.monotonic() - begin:.0f} s'}")
    if tools.ncu is not None:
        percent, problem = l2_percent(tools.ncu, programs["memory"], number)
        notes["l2_percent_of_peak" if percent else "counters"] = str(percent or f"not read: {problem}")
    raw_text = "".join(outputs)
    raw = read_raw(raw_text)
    if raw.points.empty or "device" not in raw.facts:
        raise ServiceError(f"no benchmark ended well on {device.name}: {'; '.join(notes.values())}")
    raw = raw._replace(facts=raw.facts | notes)
    rows = characterization_rows(raw, unexpected)
    for quantity, reason in rows.missing.items():
        report(f"{quantity} is not measured: {reason}")
    measured = len({line["quantity"] for line in rows.lines})
    return Measured(raw.facts["device"], measured, text_of(raw.facts, rows, created), raw_text)


def text_of(facts: Mapping[str, str], rows: Rows, created: str = "") -> str:
    """Return the characterization as a file: facts as comments, then a line for each repeat."""
    out = io.StringIO()
    out.write(f"# characterization {VERSION}: measured figures of a GPU; upload it with: profsvc upload FILE\n")
    out.write(f"# created: {created}\n" if created else "")
    for name, value in facts.items():
        out.write(f"# {name}: {' '.join(value.split())}\n")
    for quantity, reason in rows.missing.items():
        out.write(f"# not measured: {quantity}: {' '.join(reason.split())}\n")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for line in rows.lines:
        x = "" if line["x"] is None else f"{line['x']:.10g}"
        writer.writerow(line | {"x": x, "y": f"{line['y']:.6g}"})
    return out.getvalue()


def _is_busy(device: Device) -> bool:
    return device.utilization.isdigit() and int(device.utilization) > BUSY_PERCENT


def _inspect(tools: Tools, programs: Mapping[str, Path], notes: dict[str, str]) -> dict[str, str]:
    """Return the benchmarks with unexpected machine code, and note what was inspected."""
    if tools.cuobjdump is None:
        notes["machine code"] = "not inspected, for cuobjdump was not found"
        return {}
    unexpected = unexpected_code(programs, tools.cuobjdump)
    notes["machine code"] = "inspected; " + ("; ".join(f"{k}: {v}" for k, v in unexpected.items()) or "as expected")
    return unexpected


def _run(program: Path, number: int) -> tuple[str, str]:
    """Run a program on the GPU with this number; return what it printed, and what went wrong if anything."""
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as words:
        try:
            done = subprocess.run([str(program)], stdout=out, stderr=words, env=device_environment(number),
                                  timeout=SECONDS_A_PROGRAM, check=False, stdin=subprocess.DEVNULL)  # fmt: skip
            status = f"exit status {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            status = f"did not end within {SECONDS_A_PROGRAM} s"
        except OSError as error:
            status = f"cannot run: {error.strerror}"
        out.seek(0)
        words.seek(0)
        said = " ".join(words.read().split())[-MAX_WORDS:]
        return out.read(), ": ".join(part for part in (status, said if status else "") if part)


def _points(text: str) -> int:
    return len({tuple(line.split(",")[:2]) for line in text.splitlines() if line[:1].isalpha()})
