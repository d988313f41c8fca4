"""``characterize``: measure a GPU with microbenchmarks and write its characterization."""

import time
from pathlib import Path
from typing import Annotated

from profsvc.cli.console.common import print_message
from profsvc.cli.console.declaration import Group, Option


def characterize(
    out: Annotated[
        Path | None, Option(help="File to write; default: named after the GPU and the day.", metavar="FILE")
    ] = None,
    gpu: Annotated[int, Option(min=0, help="Number of the GPU, as nvidia-smi counts.", metavar="N")] = 0,
    raw: Annotated[Path | None, Option(help="File for the raw output of the benchmarks too.", metavar="FILE")] = None,
    power: Annotated[
        bool, Option("--power", help="Log the power under known loads too: nine minutes more, two files.")
    ] = False,
) -> None:
    """Measure the GPU of this machine: unit costs, latencies, bandwidths and curves of throughput.

    Compiles the microbenchmarks with nvcc, runs them for less than a minute, and writes a characterization. The
    GPU should be idle. No profiler, no root and no fixed clocks are needed. Exit code 6: no compiler or no GPU.

    With --power each unit of the device is loaded alone, DRAM on several numbers of SMs, and one light load while
    the board cools from a heavy one: power of the units, idle power, temperature coefficient.

    Examples:

      profsvc characterize

      profsvc characterize --gpu 1 --out h200.csv

      profsvc characterize --power
    """
    from platformdirs import user_cache_path

    from profsvc import settings
    from profsvc.microbench import characterize as measure

    begin = time.monotonic()
    created = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} by profsvc {settings.version()}"
    cache = Path(user_cache_path("profsvc", appauthor=False)) / "microbench"
    found = measure(cache, print_message, gpu, created)
    path = out or Path(f"{found.device.replace(' ', '_').replace('/', '_')}-{time.strftime('%Y-%m-%d')}.csv")
    path.write_text(found.text, encoding="utf-8")
    if raw is not None:
        raw.write_text(found.raw, encoding="utf-8")
    print_message(f"{path}: {found.measured} quantities in {time.monotonic() - begin:.0f} s; upload it with: "
                  f"profsvc upload {path}")  # fmt: skip
    if power:
        _write_power(cache, path, gpu)


def _write_power(cache: Path, path: Path, gpu: int) -> None:
    """Log the power and write the log and its marks beside the characterization."""
    from profsvc.microbench import log_power

    measured = log_power(cache, print_message, gpu)
    log, marks = (path.with_name(f"{path.stem}-{part}.csv") for part in ("power", "phases"))
    log.write_text(measured.log, encoding="utf-8")
    marks.write_text(measured.marks, encoding="utf-8")
    if measured.problem:
        print_message(f"power: some loads are missing: {measured.problem}")
    print_message(f"{log} and {marks}: upload them with: profsvc upload {marks} {log} --run NAME --timezone UTC")


def register(app: Group) -> None:
    """Add the command of this file."""
    app.function()(characterize)
