"""How fast the readers are, each beside a named peer that reads the same file in the same run.

Run it with ``python -m tests.benchmarks.reading``. It generates traces of nvprof and of nsys stats, a log of nvidia-smi
and a wide raw page of Nsight Compute (5 million rows each, 10 million rows, 2000 kernels of 800 metrics), a trace of
PyTorch with events of all kinds and a log of LabVIEW (500,000 rows each) and a log of a meter (6 million rows, a week
at 10 Hz; ``--scale 0.1`` makes a tenth of everything), and reads each without a store, alternating with its peer. A
ratio above 1 means that profsvc is the faster.
Times are without the imports; the memory is the highest of the process, which profsvc manages as ``profsvc upload``,
garbage included.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.command_line import parser_of
from tests.inputs.long_exports import gpu_trace, kineto, lvm, meter_log, ncu_raw, nsys_calls, nsys_trace, smi_log, write

ROOT = Path(__file__).parents[2]

START = """
import csv, resource, sys, time
import pandas as pd
from profsvc import formats
formats.READERS  # imports all readers, as the peers import theirs
path = sys.argv[1]
begin = time.perf_counter()
"""
END = """
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)
"""
OURS = """
import gc
from profsvc.cli import MIN_OBJECTS_TO_COLLECT
from profsvc.pipeline.malloc import keep_blocks
gc.set_threshold(MIN_OBJECTS_TO_COLLECT)
keep_blocks()
begin = time.perf_counter()
_, batches = formats.read(open(path, "rb"))
rows = 0
for batch in batches:
    rows += sum(len(table) for table in batch.given.values())
assert rows
"""
CSV_PEER = """
with open(path, newline="") as stream:
    for row in csv.reader(stream, delimiter=DELIMITER):
        values = [float(cell) if cell.replace(".", "").isdigit() else cell for cell in row[:6]]
"""
PEERS = {
    "nsys gpu_trace": ("csv module, partly typed", CSV_PEER.replace("DELIMITER", repr(","))),
    "nsys api_trace": ("csv module, partly typed", CSV_PEER.replace("DELIMITER", repr(","))),
    "LVM": ("csv module, typed", CSV_PEER.replace("DELIMITER", repr("\t"))),
    "PyTorch trace": ("json module, whole file", "import json\njson.load(open(path))"),
    "nvprof gpu-trace": (
        "pandas read_csv in chunks",
        'for chunk in pd.read_csv(path, skiprows=[0, 2], engine="c", chunksize=100_000): pass',
    ),
    "nvidia-smi log": (
        "pandas with parsed times and units",
        """
for chunk in pd.read_csv(path, skipinitialspace=True, chunksize=200_000):
    chunk["timestamp"] = pd.to_datetime(chunk["timestamp"], format="%Y/%m/%d %H:%M:%S.%f")
    for name in chunk.columns[2:]:
        if "[" in name:
            chunk[name] = chunk[name].str.removesuffix(" " + name.split("[")[1][:-1]).astype(float)
""",
    ),
    "log of a meter": (
        "pandas with parsed times",
        """
for chunk in pd.read_csv(path, parse_dates=["Timestamp"], date_format="ISO8601", chunksize=200_000): pass
""",
    ),
    "ncu raw, wide": (
        "csv module, typed",
        """
with open(path, newline="") as stream:
    rows = csv.reader(stream)
    header, units = next(rows), next(rows)
    for row in rows:
        values = [float(cell) for cell in row[11:]]
""",
    ),
}


# The events of a trace of which some operators have recorded shapes, and about how many of a hundred are such.


CASES = (
    ("nvprof gpu-trace", gpu_trace, 5_000_000),
    ("nvidia-smi log", smi_log, 10_000_000),
    ("ncu raw, wide", ncu_raw, 2_000),
    ("nsys gpu_trace", nsys_trace, 5_000_000),
    ("nsys api_trace", nsys_calls, 5_000_000),
    ("PyTorch trace", kineto, 500_000),
    ("LVM", lvm, 500_000),
    ("log of a meter", meter_log, 6_000_000),
)


def timed(body: str, path: Path) -> tuple[float, float]:
    """Run ``body`` on the file in a process of its own: seconds, without the imports, and peak memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", START + body + END, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    took, peak = map(float, done.stdout.split())
    return took, peak


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full size of each file")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=[title for title, _, _ in CASES], help="one of the files")
    wanted = parser.parse_args()
    print(f"{'work':18}{'rows':>10}{'MB':>7}{'profsvc s':>11}{'peer s':>9}{'ratio':>8}{'peak MB':>9}  peer")
    for title, lines, rows in CASES:
        if wanted.only not in (None, title):
            continue
        rows = max(int(rows * wanted.scale), 10)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "export.csv"
            write(path, lines(rows))
            peer, body = PEERS[title]
            pairs = [(timed(OURS, path), timed(body, path)) for _ in range(wanted.repeats)]
            ratio = statistics.median(theirs[0] / ours[0] for ours, theirs in pairs)
            ours, theirs = (statistics.median(pair[side][0] for pair in pairs) for side in (0, 1))
            peak = max(pair[0][1] for pair in pairs)
            size = path.stat().st_size / 1e6
        print(f"{title:18}{rows:10}{size:7.0f}{ours:11.2f}{theirs:9.2f}{ratio:8.3f}{peak:9.0f}  {peer}", flush=True)


if __name__ == "__main__":
    main()
