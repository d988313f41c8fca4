"""What raw pages of Nsight Compute cost in the store: seconds, memory, bytes on disk, and how fast they answer.

Run it with ``python -m tests.benchmarks.wide [FILE...]``. It uploads generated pages of 2000 kernels with 800 and with
2000 metrics (``--scale 0.1`` makes a tenth of the kernels), and the files given, each into a SQLite store of its own.
Bytes are told as multiples of what gzip -6 makes of the page: those of the cells, and those of the whole file, in which
the names of metrics and the results of the analysis lie as well. Numbers of the generated pages follow no order at all.
"""

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

from profsvc.formats.parsing.stream import open_stream
from tests.benchmarks.reading import ROOT
from tests.command_line import parser_of
from tests.inputs.long_exports import ncu_raw, write

UPLOAD = """
import resource, sqlite3, sys, time
from pathlib import Path
from profsvc import pipeline, store
path, file = Path(sys.argv[1]), Path(sys.argv[2])
engine = store.open_store(str(file))
begin = time.perf_counter()
with path.open("rb") as stream:
    verdict = pipeline.ingest(engine, stream, path.name, store.RunInfo(name="wide"))
took, peak = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
launch = store.select(engine, "v1_launches", run_id=verdict.run_id, launch_index=verdict.launches // 2)[0]["launch_id"]
metric = store.select(engine, "v1_metrics", launch_id=launch)[-1]["metric"]
asked = []
for only in ({"launch_id": launch}, {"run_id": verdict.run_id, "metric": metric}):
    begin = time.perf_counter()
    store.select(engine, "v1_metrics", **only)
    asked.append((time.perf_counter() - begin) * 1e3)
engine.dispose()
tables = ("metrics", "wide_blocks", "wide_cells", "wide_lists", "wide_constants")
size = f"SELECT sum(pgsize) FROM dbstat WHERE name IN {tables}"
print(took, peak, sqlite3.connect(file).execute(size).fetchone()[0], file.stat().st_size, *asked)
"""


def measured(page: Path, file: Path) -> list[float]:
    """Upload a page in a process of its own: s, MB at most, bytes of cells and of the store, ms of two questions."""
    command = [sys.executable, "-c", UPLOAD, str(page), str(file)]
    return [float(word) for word in subprocess.check_output(command, cwd=ROOT, text=True).split()]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the kernels of the generated pages")
    wanted = parser.parse_args()
    kernels = max(int(2000 * wanted.scale), 10)
    print(f"{'page':32}{'MB':>7}{'s':>7}{'peak MB':>9}{'cells/gz':>10}{'file/gz':>9}{'launch ms':>11}{'metric ms':>11}")
    with tempfile.TemporaryDirectory() as folder:
        pages = [path.absolute() for path in wanted.files]
        for metrics in (800, 2000):
            pages.append(Path(folder) / f"{kernels} x {metrics}.csv")
            write(pages[-1], ncu_raw(kernels, metrics))
        for number, page in enumerate(pages):
            with page.open("rb") as stream:
                data = open_stream(stream).read()
            packed = len(gzip.compress(data, 6))
            took, peak, cells, whole, launch, metric = measured(page, Path(folder) / f"{number}.sqlite")
            print(
                f"{page.name:32}{len(data) / 1e6:7.1f}{took:7.2f}{peak:9.0f}{cells / packed:10.2f}{whole / packed:9.2f}"
                f"{launch:11.1f}{metric:11.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
