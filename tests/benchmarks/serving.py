"""An upload of a page of Nsight Compute over HTTP, from the first byte sent to the run shown, and its parts.

    python -m tests.benchmarks.serving [MB, default 10]

Raw pages hold a column a metric, details a line a metric and the tool's advice. Of each the seconds of the best of
several rounds: sent and stored (201), the run shown besides, and, each alone and without HTTP, reading, storing with
reading and analysis, the analysis again, and pandas.read_csv of the same bytes, for scale. CPU seconds are those of
client and service together.
"""

import csv
import gzip
import io
import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from tests.command_line import parser_of
from tests.conftest import DEMO, ROOT

ROUNDS = 3
DETAILS = ROOT / "fixtures" / "ncu_details" / "h200_three_launches.csv.gz"
# Page -> the file whose launches come again and again, and how many lines stand above them.
PAGES = {"raw": (DEMO, 2), "details": (DETAILS, 1)}


class Took(NamedTuple):
    """Seconds of the parts of an upload."""

    stored: float
    shown: float
    cpu: float
    read: float
    ingested: float
    analysed: float
    pandas: float


def export(megabytes: float, salt: int, page: str = "raw") -> bytes:
    """Return a page of that size: the launches of a file again and again, each with a number of its own."""
    path, above = PAGES[page]
    lines = list(filter(None, csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode()))))
    launches = [list(rows) for _, rows in groupby(lines[above:], itemgetter(0))]
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerows(lines[:above])
    for number in count():
        writer.writerows([str(number), str(salt), *row[2:]] for row in launches[number % len(launches)])
        if out.tell() >= megabytes * 1e6:
            return out.getvalue().encode()
    raise AssertionError


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what some work gives, and the seconds that it took."""
    began = time.monotonic()
    return work(), time.monotonic() - began


def rounds(page: str, megabytes: float, folder: Path, most: int = ROUNDS) -> Iterator[tuple[dict[str, Any], Took]]:
    """Send pages of that size to a service, each with other bytes; yield what it said of each, and the seconds."""
    import pandas as pd

    from profsvc import pipeline, store
    from profsvc.client import Client
    from profsvc.web.http.state import AppState
    from tests.web.conftest import running

    served, beside = (store.open_store(str(folder / f"{page}-{name}.sqlite")) for name in ("served", "beside"))
    site = AppState(served, store.blob_store_of(served, free_bytes=1))
    ingest = partial(
        pipeline.ingest, beside, run=store.RunInfo(name="r"), files=store.blob_store_of(beside, free_bytes=1)
    )
    with running(site) as service, Client(service.url) as client:
        for number in range(most):
            body, cpu = export(megabytes, 1000 + number, page), time.process_time()
            sent = partial(client.submit, io.BytesIO(body), file_name="page.csv", run=f"run{number}")
            said, stored = timed(sent)
            _, shown = timed(partial(client.run, said["run_id"]))
            cpu = time.process_time() - cpu
            _, read = timed(partial(pipeline.check_file, io.BytesIO(body), "page.csv"))
            kept, ingested = timed(partial(ingest, io.BytesIO(body), "page.csv"))
            _, analysed = timed(partial(pipeline.analyze, beside, kept.run_id))
            store.delete_run(beside, kept.run_id)
            _, peer = timed(partial(pd.read_csv, io.BytesIO(body)))
            yield said | {"bytes": len(body)}, Took(stored, shown, cpu, read, ingested, analysed, peer)
    served.dispose()
    beside.dispose()


def main() -> None:
    """Send each page a few times."""
    parser = parser_of(__doc__)
    parser.add_argument("megabytes", nargs="?", type=float, default=10.0, help="size of a page in MB [%(default)g]")
    megabytes = parser.parse_args().megabytes
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")  # pandas wonders at mixed columns
    print("page        MB launches   values  " + "".join(f"{name:>9}" for name in Took._fields) + "  /pandas")
    with tempfile.TemporaryDirectory() as folder:
        for page in PAGES:
            done = list(rounds(page, megabytes, Path(folder)))
            said, _ = done[0]
            best = Took(*(min(took) for took in zip(*(took for _, took in done), strict=True)))
            told = "".join(f"{seconds:9.2f}" for seconds in best)
            whole = (best.stored + best.shown) / best.pandas
            print(f"{page:9}{said['bytes'] / 1e6:5.1f}{said['launches']:9}{said['metrics']:9}  {told}{whole:9.1f}")


if __name__ == "__main__":
    main()
