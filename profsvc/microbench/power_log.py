"""Logs the power of a GPU under known loads: each unit, several numbers of SMs, and one load as the board cools."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from profsvc.errors import ServiceError
from profsvc.microbench.toolkit import (
    SECONDS_TO_ASK,
    build,
    device_environment,
    find_device,
    find_tools,
    last_words,
    run_tool,
)  # fmt: skip

Report = Callable[[str], None]
PROGRAM = "power"
HEADER = "unix_s,mark,type,sms,extra"
PERIOD_MS = 50
FIELDS = (
    "timestamp", "index", "name", "power.draw.instant", "power.draw.average", "temperature.gpu", "temperature.memory",
    "clocks.current.sm", "clocks.current.memory", "utilization.gpu", "clocks_event_reasons.active",
)  # fmt: skip
# Drivers before 535 have neither the two kinds of power nor the new name of the reasons.
OLD_FIELDS = (*FIELDS[:3], "power.draw", *FIELDS[5:-1], "clocks_throttle_reasons.active")
UNITS = ("fp32", "integer", "special", "fp64", "tensor", "shared", "l2", "dram")
SWEEP = (1, 1 / 8, 1 / 4, 1 / 2, 3 / 4)
LIGHT_SHARE = 1 / 8
# The die cools within seconds once a heavy load ends, and each such fall tells how the power follows the temperature.
# After 12 s the power wanders more than the temperature still moves: many short falls tell more than few long ones.
LONG_FALLS, SHORT_FALLS = 2, 24


class Phase(NamedTuple):
    """A load, on how many SMs (an integer is their number, another figure their share), and for how long."""

    load: str
    sms: int | float
    seconds: float


class Measurement(NamedTuple):
    """The GPU, the log of nvidia-smi in UTC, the marks of the phases, and what went wrong, if anything."""

    device: str
    log: str
    marks: str
    problem: str


def phases() -> list[Phase]:
    """Return the loads in their order, about nine minutes.

    >>> sum(phase.seconds for phase in phases())
    506.0
    """
    begin = [Phase("idle", 0, 20.0), Phase("light", LIGHT_SHARE, 20.0)]
    units = [Phase(unit, 1.0, 4.0) for unit in UNITS]
    sweep = [Phase("dram", share, 4.0) for share in SWEEP]
    falls = [Phase("heavy", 1.0, 8.0), Phase("light", LIGHT_SHARE, 14.0)] * LONG_FALLS
    falls += [Phase("heavy", 1.0, 3.0), Phase("light", LIGHT_SHARE, 12.0)] * SHORT_FALLS
    return [*begin, *units, *sweep, *falls, Phase("idle", 0, 10.0)]


def arguments(wanted: list[Phase]) -> list[str]:
    """Return the arguments of the program; it takes a number with a point as a share of the SMs.

    >>> arguments([Phase("dram", 1, 4.0), Phase("dram", 1 / 8, 4.0), Phase("idle", 0, 2.0)])
    ['dram', '1', '4', 'dram', '0.125', '4', 'idle', '0', '2']
    """
    return [word for load, sms, seconds in wanted for word in (load, str(sms), f"{seconds:g}")]


def log_power(folder: Path, report: Report, number: int = 0) -> Measurement:
    """Run the loads on the GPU with this number and log its power.

    ``folder`` keeps the compiled program. Raise `InputError` without a compiler or a GPU, `ServiceError` if nothing
    was logged.
    """
    tools = find_tools()
    device = find_device(tools, number)
    program = build(tools, device.architecture, folder, (PROGRAM,))[PROGRAM]
    wanted = phases()
    report(f"power: {len(wanted)} phases in {sum(phase.seconds for phase in wanted):.0f} s")
    with tempfile.TemporaryFile("w+", errors="replace") as log, board_log(tools.nvidia_smi, str(number), log):
        lines, problem = _run([str(program), *arguments(wanted)], number, report)
        log.seek(0)
        text = log.read()
    if len(lines) < 2 or text.count("\n") < 2:
        raise ServiceError(f"no power was logged on {device.name}: {problem or last_words(text)}")
    return Measurement(device.name, text, "\n".join([HEADER, *lines, ""]), problem)


@contextmanager
def board_log(nvidia_smi: str, gpus: str, log: IO[str]) -> Iterator[None]:
    """Let nvidia-smi log these GPUs, with times of UTC and decimal points, until the block ends."""
    ask = [nvidia_smi, f"--id={gpus}", "--format=csv"]
    once = run_tool([*ask, f"--query-gpu={','.join(FIELDS)}"], SECONDS_TO_ASK)
    fields = FIELDS if once.returncode == 0 else OLD_FIELDS
    command = [*ask, f"--query-gpu={','.join(fields)}", f"--loop-ms={PERIOD_MS}"]
    environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
    with subprocess.Popen(
        command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment
    ) as smi:
        try:
            yield
        finally:
            smi.terminate()


def _run(command: list[str], number: int, report: Report) -> tuple[list[str], str]:
    """Run the loads; return their marks and what went wrong, if anything. The program ends with this one."""
    marks: list[str] = []
    with (
        tempfile.TemporaryFile("w+", errors="replace") as words,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=words, text=True, errors="replace",
                         stdin=subprocess.DEVNULL, env=device_environment(number)) as program,
    ):  # fmt: skip
        assert program.stdout is not None
        try:
            for line in program.stdout:
                cells = line.rstrip("\n").split(",")
                if len(cells) < 4 or cells[1] not in ("begin", "end"):
                    continue
                marks.append(line.rstrip("\n"))
                if cells[1] == "begin":
                    report(f"power: {cells[2]}" + (f" on {cells[3]} SMs" if cells[3] != "0" else ""))
            status = program.wait()
        finally:
            program.kill()
        words.seek(0)
        said = last_words(words.read())
    return marks, ": ".join(part for part in (f"exit status {status}" if status else "", said) if part)
