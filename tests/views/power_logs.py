"""A run with a log of power and marks, made up: an idle board, then one load on more and more SMs."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine

from profsvc import pipeline, store
from tests.inputs.uploads import ingest_all

BEGIN = datetime(2026, 11, 20, 13, 16, 16, tzinfo=UTC)
IDLE_W, FIRST_W, SM_W = 80.0, 60.0, 2.0
SMS = (1, 16, 33, 66, 132)
COLD_C, RISE_C_PER_W, LAG_S = 31.0, 0.05, 3.0
PHASE_S, PAUSE_S, STEP_S = 10.0, 2.0, 0.25


def phases() -> list[tuple[str, int, float, float]]:
    """Name, SMs, begin and end [s] of each phase."""
    made, begin = [("idle", 0, 0.0, 20.0)], 20.0 + PAUSE_S
    for sms in SMS:
        made.append(("mem", sms, begin, begin + PHASE_S))
        begin += PHASE_S + PAUSE_S
    return made


def log(more_w: float = 0.0, rise_c_per_w: float = RISE_C_PER_W) -> str:
    """What nvidia-smi would have printed, had the loads drawn so much more; a well-cooled board does not warm up."""
    lines, time = ["timestamp, index, name, power.draw.instant [W], temperature.gpu, clocks.current.sm [MHz]"], 0.0
    heat_c = COLD_C
    while time < phases()[-1][3] + PAUSE_S:
        sms = next((sms for _, sms, begin, end in phases() if begin <= time < end), 0)
        watts = IDLE_W + (FIRST_W + SM_W * sms + more_w if sms else 0.0) + 0.01 * (round(time / STEP_S) % 3)
        stamp = (BEGIN + timedelta(seconds=time)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        lines.append(f"{stamp}, 0, NVIDIA H200, {watts:.2f} W, {heat_c:.0f}, 1980 MHz")
        heat_c += (COLD_C + rise_c_per_w * (watts - IDLE_W) - heat_c) * STEP_S / LAG_S
        time += STEP_S
    return "\n".join(lines) + "\n"


def marks(note: str = "") -> str:
    """When each phase began and ended."""
    rows, first = [f"# {note}", "unix_s,mark,type,sms,extra"], BEGIN.timestamp()
    for name, sms, begin, end in phases():
        rows += [f"{first + begin:.3f},begin,{name},{sms}", f"{first + end:.3f},end,{name},{sms},launches={100 * sms}"]
    return "\n".join(rows) + "\n"


def fill(engine: Engine, run: str = "sweep", more_w: float = 0.0, at: str | None = None) -> int:
    """Upload both as one run; return its number."""
    files = [(log(more_w).encode(), "smi.csv"), (marks(run).encode(), "phases.csv")]
    return ingest_all(engine, files, store.RunInfo(name=run, at=at), pipeline.ReadOptions(zone="UTC")).run_id or 0
