"""The log of known loads: what is asked of the tools, what comes back, and what happens if one of them fails."""

import gzip
import os
from pathlib import Path

import pandas as pd
import pytest

from profsvc import pipeline, store
from profsvc.errors import ServiceError
from profsvc.microbench import log_power, power_log
from profsvc.microbench.power_log import HEADER, Phase, phases
from tests.environment.cuda import LOGGING_SMI, PHASES, POWER_LOG, Script

BOARDS = {"h100": 0.61, "h200_falls": 1.05}


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
    assert said[:2] == ["power: 68 phases in 506 s", "power: idle"]
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


@pytest.mark.parametrize("board", BOARDS)
def test_the_log_of_a_board_gives_its_coefficient_within_30_percent(board: str, tmp_path: Path) -> None:
    """What must lie inside was told by eye.

    It is the mean of the 26 falls of the H100 from 2 to 11 s, and the line through 12 repeats of the light load of a
    cooled H200 between 40 and 44 degC, of the log ``h200_repeats``.
    """
    marks = POWER_LOG.with_name(f"power_marks_{board}.csv")
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    for path in (marks, POWER_LOG.with_name(f"power_smi_{board}.csv.gz")):
        with path.open("rb") as stream:
            pipeline.ingest(engine, stream, path.name, store.RunInfo(name=board), pipeline.ReadOptions(zone="UTC"))
    rows = pd.DataFrame(store.table(engine, "v1_power_coefficients"))
    engine.dispose()
    marked = pd.read_csv(marks)
    assert list(marked.loc[marked["mark"] == "begin", "type"]) == [phase.load for phase in phases()]
    used = rows[(rows["used"] == 1) & (rows["sensor"] == "power.draw.instant")]
    low, value, high = used[["coefficient_low", "coefficient_w_per_c", "coefficient_high"]].iloc[0]
    assert (high - low) / 2 < 0.3 * value
    assert low < BOARDS[board] < high


def test_both_readings_of_a_cooled_board_agree(tmp_path: Path) -> None:
    """Each is within the interval of the other, and both hold the line through repeats of another log, 1.05 W/degC."""
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    for name in ("power_marks_h200_falls.csv", "power_smi_h200_falls.csv.gz"):
        with POWER_LOG.with_name(name).open("rb") as stream:
            pipeline.ingest(engine, stream, name, store.RunInfo(name="falls"), pipeline.ReadOptions(zone="UTC"))
    rows = pd.DataFrame(store.table(engine, "v1_power_coefficients"))
    engine.dispose()
    used = rows[rows["used"] == 1].set_index("sensor")
    one, other = (used.loc[f"power.draw.{name}"] for name in ("instant", "average"))
    for row, value in ((one, other["coefficient_w_per_c"]), (other, one["coefficient_w_per_c"]), (one, 1.05)):
        assert row["coefficient_low"] < value < row["coefficient_high"]
    assert (one["coefficient_high"] - one["coefficient_low"]) / 2 < 0.3 * one["coefficient_w_per_c"]


@pytest.mark.parametrize(
    ("board", "between"), [("h100", "0.565 and 0.999"), ("h200_repeats", "0.835 and 1.38")], ids=["h100", "h200"]
)
def test_a_sensor_that_averages_is_refused_where_it_contradicts_itself(
    board: str, between: str, tmp_path: Path
) -> None:
    engine = store.open_store(str(tmp_path / "store.sqlite"), pooled=True)
    for name in (f"power_marks_{board}.csv", f"power_smi_{board}.csv.gz"):
        with POWER_LOG.with_name(name).open("rb") as stream:
            pipeline.ingest(engine, stream, name, store.RunInfo(name=board), pipeline.ReadOptions(zone="UTC"))
    rows = pd.DataFrame(store.table(engine, "v1_power_coefficients"))
    engine.dispose()
    assert set(rows.loc[rows["used"] == 1, "sensor"]) == {"power.draw.instant"}
    refused = rows[(rows["sensor"] == "power.draw.average") & (rows["used"] == 0)]
    assert refused["reason"].str.contains(f"between repeats of one load between {between}").any()
