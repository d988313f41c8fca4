"""An upload of Nsight Compute's raw page over HTTP, from the first byte sent to the run shown; beside it without HTTP.

python -m tests.benchmarks.serving [MB, default 10]
"""

import csv
import gzip
import io
import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import DEMO

ROUNDS = 3


def export(megabytes: float, salt: int) -> bytes:
    """Return a page of that size: the launches of the demo again and again, each with a number of its own."""
    header, units, *launches = csv.reader(io.StringIO(gzip.decompress(DEMO.read_bytes()).decode()))
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerows([header, units])
    number = 0
    while out.tell() < megabytes * 1e6:
        row = launches[number % len(launches)]
        writer.writerow([str(number), str(salt), *row[2:]])
        number += 1
    return out.getvalue().encode()


def main() -> None:
    """Send it a few times, each with other bytes."""
    from profsvc import pipeline, store
    from profsvc.client import Client
    from profsvc.web.site import Site
    from tests.web.conftest import running

    logging.disable(logging.CRITICAL)
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    with tempfile.TemporaryDirectory() as folder:
        engine = store.open_store(str(Path(folder) / "store.sqlite"))
        with running(Site(engine, store.files_of(engine, free_bytes=1))) as service, Client(service.url) as client:
            for number in range(ROUNDS):
                body = export(megabytes, 1000 + number)
                began = time.monotonic()
                said = client.submit(io.BytesIO(body), file_name="raw.csv", run=f"run{number}")
                stored = time.monotonic()
                client.run(said["run_id"])
                shown = time.monotonic()
                beside = store.open_store(str(Path(folder) / f"beside{number}.sqlite"))
                files = store.files_of(beside, free_bytes=1)
                again = time.monotonic()
                pipeline.ingest(beside, io.BytesIO(body), "raw.csv", store.RunInfo(name="r"), files=files)
                direct = time.monotonic() - again
                beside.dispose()
                size = f"{len(body) / 1e6:.1f} MB, {said['launches']} launches, {said['metrics']} values"
                told = f"stored in {stored - began:.2f} s, shown after {shown - began:.2f} s"
                print(f"{size}: {told}; without HTTP {direct:.2f} s")
        engine.dispose()


if __name__ == "__main__":
    main()
