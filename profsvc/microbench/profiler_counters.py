"""What Nsight Compute counts on a benchmark, where it is installed and may read counters."""

import csv
import re
from pathlib import Path

from profsvc.errors import ProfsvcError
from profsvc.microbench.toolkit import device_environment, last_words, run_tool

METRIC = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
L2_READ = "read_allILb0"
"""Part of the mangled name of the kernel that reads from L2 alone."""
WARM_LAUNCHES = 3
SECONDS = 60


def l2_percent(ncu: str, memory: Path, number: int = 0) -> tuple[float | None, str]:
    """Return the throughput of L2 in percent of its peak while all SMs read it, or None and the reason."""
    options = ["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--kill", "yes"]
    which = ["--kernel-name-base", "mangled", "-k", f"regex:{L2_READ}", "-s", str(WARM_LAUNCHES), "-c", "1"]
    try:
        done = run_tool([ncu, *options, *which, "--metrics", METRIC, str(memory)], SECONDS, device_environment(number))
    except ProfsvcError as error:
        return None, str(error)
    table = [line for line in done.stdout.splitlines() if line.startswith('"')]
    for row in csv.DictReader(table):
        if re.fullmatch(r"\d{1,3}(\.\d+)?", found := row.get(METRIC) or ""):
            return float(found), ""
    return None, last_words(done.stdout + done.stderr) or "it printed nothing"
