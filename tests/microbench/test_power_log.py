"""The log of known loads: what is asked of the tools, what comes back, and what happens if one of them fails."""

import gzip
import os
from pathlib import Path

import pytest

from profsvc.errors import ServiceError
from profsvc.microbench import log_power, power_log
from profsvc.microbench.power_log import HEADER, Phase
from tests.cuda import LOGGING_SMI, PHASES, POWER_LOG, Script


def running(folder: Path) -> list[str]:
    """Processes that were started from a folder and have not ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = process.joinpath("cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words and int(process.name) != os.getpid():
            found.append(words)
    return found


def test_log_and_marks_come_back_and_nothing_keeps_running(power_cuda: Path, tmp_path: Path) -> None:
    said: list[str] = []
    measured = log_power(tmp_path / "kept", said.append)
    assert measured.device == "NVIDIA H200"
    assert measured.problem == ""
    assert measured.marks == PHASES.read_text()
    assert measured.log == gzip.decompress(POWER_LOG.read_bytes()).decode()
    assert said[:2] == ["power: 32 phases in 278 s", "power: idle"]
    assert "power: dram on 16 SMs" in said
    assert running(power_cuda) == []


def test_a_program_that_fails_half_way_leaves_what_it_measured(
    power_cuda: Path, tmp_path: Path, script: Script
) -> None:
    half = "\n".join(PHASES.read_text().splitlines()[:6])
    (power_cuda / "marks.txt").write_text(half + "\n")
    nvcc = (power_cuda / "nvcc").read_text().replace('.txt"\\n', '.txt"; echo an illegal access >&2; exit 1\\n')
    script("nvcc", nvcc)
    measured = log_power(tmp_path / "kept", lambda _: None)
    assert measured.problem == "exit status 1: an illegal access"
    assert measured.marks.splitlines() == half.splitlines()
    (power_cuda / "marks.txt").write_text(HEADER + "\n")
    with pytest.raises(ServiceError, match="no power was logged on NVIDIA H200: exit status 1: an illegal access"):
        log_power(tmp_path / "kept", lambda _: None)
    assert running(power_cuda) == []


def test_an_old_driver_is_asked_in_its_own_words(power_cuda: Path, tmp_path: Path, script: Script) -> None:
    asked = power_cuda / "asked"
    smi = LOGGING_SMI.format(log=POWER_LOG, status=2).replace("zcat", f'echo "$*" >"{asked}"; zcat')
    script("nvidia-smi", smi)
    log_power(tmp_path / "kept", lambda _: None)
    words = asked.read_text()
    assert "power.draw," in words
    assert "clocks_throttle_reasons.active" in words
    assert "instant" not in words


def test_phases_are_numbers_or_shares() -> None:
    assert power_log.arguments([Phase("dram", 1, 4.0), Phase("dram", 1.0, 0.5)]) == [
        "dram",
        "1",
        "4",
        "dram",
        "1.0",
        "0.5",
    ]
