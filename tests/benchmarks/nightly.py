"""How long a night takes, and what it finds: a thousand kernels for weeks of nights, and power under a drift of heat.

Run it with ``python -m tests.benchmarks.nightly [SERIES] [NIGHTS]``; ``PROFSVC_STORE`` names another store than a new
SQLite file. Everything is made up, from one seed. One kernel in a hundred becomes 5 % slower in the last nights; runs
scatter by 1 %. Times are those of the processor. Then seasons in which the board warms by 8 degrees, half of them with
a load that draws 3 % more: how many raise an alarm by the power as measured, and by the corrected one.
"""

import hashlib
import os
import resource
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Engine

from profsvc import store
from profsvc.tables import Batch, frame
from tests.command_line import parser_of
from tests.inputs import nights

SEED = 20261121
SERIES, NIGHTS = 1000, 60
CHANGED, SLOWER, NOISE = 0.01, 1.05, 0.01
LAST = 5
PAST = 300  # nights since the first of January 2026; more begin before it, for no report is of a future night
QUIET, WARM, SEASONS = 20, 6, 10
HEAT_C, MORE_W = 8.0, 9.0


class Watched(NamedTuple):
    """What came of some nights on many series."""

    seconds: list[float]
    real: int
    found: int
    false: int
    same: bool


class Drifted(NamedTuple):
    """Seasons in which something raised an alarm, of so many."""

    seasons: int
    raw: int
    corrected: int


def put_many(engine: Engine, night: int, durations_ns: np.ndarray) -> None:
    """Put a run with a launch of each of many kernels."""
    count = len(durations_ns)
    at = datetime(2026, 1, 1, 2, tzinfo=UTC) + timedelta(days=night)
    stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    launches = {
        "launch_index": list(range(count)),
        "kernel": [f"kernel_{number:04}(float *)" for number in range(count)],
        "device": [nights.DEVICE] * count,
        "compute_capability": ["9.0"] * count,
        "duration_ns": durations_ns.tolist(),
        "line": list(range(2, count + 2)),
    }
    digest = hashlib.sha256(str(night).encode()).hexdigest()
    upload = store.UploadInfo("raw.csv", digest, 1, "ncu-raw", received_at=stamp)
    batch = Batch({"launches": frame("launches", launches)}, lines_stored=count)
    store.write_upload(engine, upload, store.RunInfo(name=f"night {night}", started_at=stamp), iter([batch]))


def watched(engine: Engine, series: int = SERIES, count: int = NIGHTS) -> Watched:
    """Put nights of many kernels and report the last ones."""
    rng = np.random.default_rng(SEED)
    level = rng.uniform(1e4, 1e6, series)
    changed = rng.choice(series, max(1, round(CHANGED * series)), replace=False)
    seconds, found, same = [], set[str](), True
    earlier = max(0, count - PAST)
    for night in range(-earlier, count - earlier):
        slower = np.ones(series)
        if night >= count - earlier - LAST:
            slower[changed] = SLOWER
        put_many(engine, night, level * slower * (1 + NOISE * rng.standard_normal(series)))
        if night < count - earlier - LAST - 1:
            continue
        began = time.process_time()
        document = nights.report(engine, night)
        seconds.append(time.process_time() - began)
        found |= {row["subject"] for row in document["findings"]}
        same = same and nights.report(engine, night) == document
    real = {f"kernel_{number:04}" for number in changed}
    return Watched(seconds, len(real), len(found & real), len(found - real), same)


def drifted(folder: Path, more_w: float, seasons: int = SEASONS) -> Drifted:
    """Put seasons in which the board warms, and count those with an alarm about power."""
    raw = corrected = 0
    for number in range(seasons):
        engine = store.open_store(str(folder / f"{more_w:g}-{number}.sqlite"))
        rng = np.random.default_rng([SEED, number, int(more_w)])
        seen: dict[str, set[str]] = {"findings": set(), "explained": set()}
        for night in range(QUIET + WARM):
            warm = HEAT_C * (night >= QUIET) + rng.standard_normal()
            nights.put(engine, night, rng, temperature_c=40 + warm, more_w=more_w * (night >= QUIET))
            if night >= QUIET - 1:
                document = nights.report(engine, night)
                for part, names in seen.items():
                    names.update(row["quantity"] for row in document[part])
        corrected += "power" in seen["findings"]
        raw += "power" in seen["findings"] | seen["explained"]
        engine.dispose()
    return Drifted(seasons, raw, corrected)


def _line(what: str, value: Any) -> None:
    print(f"{what:72}{value!s:>20}", flush=True)


def main() -> None:
    """Print both tables."""
    parser = parser_of(__doc__)
    parser.add_argument("series", nargs="?", type=int, default=SERIES, help="number of kernels [%(default)s]")
    parser.add_argument("nights", nargs="?", type=int, default=NIGHTS, help="number of nights [%(default)s]")
    asked = parser.parse_args()
    series, count = asked.series, asked.nights
    with tempfile.TemporaryDirectory() as folder:
        engine = store.open_store(os.environ.get("PROFSVC_STORE") or str(Path(folder) / "store.sqlite"))
        got = watched(engine, series, count)
        engine.dispose()
        _line(f"{series} series, {count} nights: processor time of a report, median", f"{np.median(got.seconds):.2f} s")
        _line("    the longest (the first, which has all nights to look at)", f"{max(got.seconds):.2f} s")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        _line("    memory of the process at most, with what puts the nights", f"{peak:.0f} MiB")
        _line(f"    of {got.real} kernels that became {SLOWER - 1:.0%} slower, found within {LAST} nights", got.found)
        _line("    false findings in those nights (at most 10 % of all)", got.false)
        _line("    the same night again gave the same report", got.same)
        for more_w, what in (
            (0.0, "nothing else changed"),
            (MORE_W, f"the load draws {MORE_W / nights.LOAD_W:.0%} more"),
        ):
            seen = drifted(Path(folder), more_w)
            _line(f"{HEAT_C:g} degrees warmer, {what}: alarms by raw power", f"{seen.raw} of {seen.seasons}")
            _line("    alarms by corrected power", f"{seen.corrected} of {seen.seasons}")


if __name__ == "__main__":
    main()
