"""The rows of blocks, unpacked for an archive, are those of the view, bit for bit."""

import io
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.errors import InputError
from profsvc.store.connection.transactions import reading
from profsvc.store.maintenance.archive import metric_rows
from profsvc.store.maintenance.archive.archiving import _of_view
from profsvc.store.maintenance.archive.contents import Group
from profsvc.store.maintenance.archive.parquet_files import schema_of_view
from tests.inputs.long_exports import ncu_raw
from tests.store.maintenance.archive.stores import FIXTURES

VIEW = "v1_metrics"
FOLDERS = ("ncu_raw", "ncu_details", "ncu_text", "nvprof")
MAX_BYTES = 30_000


def put(engine: Engine, run: str, *files: Path) -> None:
    for file in files:
        with file.open("rb") as stream:
            pipeline.ingest(engine, stream, file.name, store.RunInfo(name=run))


def differing(engine: Engine) -> tuple[int, Counter[str], Counter[str]]:
    """Return the number of rows of the view, and those that only one of both ways gives."""
    with reading(engine) as connection:
        runs = dict.fromkeys(connection.execute(text("SELECT run_id FROM runs")).scalars(), 0)
        wanted = Counter(map(repr, map(tuple, connection.execute(text(f"SELECT * FROM {VIEW}")))))
    found: Counter[str] = Counter()
    schema = schema_of_view(VIEW)
    for rows in _of_view(engine, VIEW, Group(runs, {}, {})):
        if isinstance(rows, pa.Table):
            assert rows.schema == schema
            rows = [tuple(row.values()) for row in rows.to_pylist()]
        found.update(map(repr, map(tuple, rows)))
    return wanted.total(), wanted - found, found - wanted


@pytest.mark.usefixtures("unanalysed")  # metrics are as they were read
def test_the_metrics_of_every_export_are_those_of_the_view(engine: Engine) -> None:
    for folder in FOLDERS:
        for file in sorted((FIXTURES / folder).iterdir()):
            if file.suffix in {".csv", ".txt", ".gz"} and file.stat().st_size < MAX_BYTES:
                try:
                    put(engine, f"{folder}/{file.name}", file)
                except InputError:
                    continue  # a file that is refused on purpose
    # Two pages of the same launches: the rows of one are those of the launches of the other.
    pages = ("ncu_raw/h200_three_launches.csv.gz", "ncu_details/h200_three_launches_min.csv.gz")
    put(engine, "both pages", *(FIXTURES / page for page in pages))
    put(engine, "both pages, the other first", *(FIXTURES / page for page in reversed(pages)))
    rows, missing, added = differing(engine)
    assert rows > 2_000
    assert (list(missing)[:3], list(added)[:3]) == ([], [])


@pytest.mark.usefixtures("unanalysed")
@pytest.mark.parametrize(("cells", "blocks"), [(1, 1_000), (500, 2), (200_000, 1_000)])
def test_launches_of_several_blocks_are_those_of_the_view(
    cells: int, blocks: int, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_rows, "CELLS_PER_TABLE", cells)
    monkeypatch.setattr(metric_rows, "BLOCKS_PER_TABLE", blocks)
    page = "".join(ncu_raw(150, 40)).encode()  # 64, 64 and 22 launches
    pipeline.ingest(engine, io.BytesIO(page), "raw.csv", store.RunInfo(name="several"))
    rows, missing, added = differing(engine)
    assert rows > 150 * 30
    assert (list(missing)[:3], list(added)[:3]) == ([], [])


def test_zeros_at_the_end_come_back() -> None:
    def with_zeros(ending: str, *cells: str) -> list[str]:
        texts = pa.array(cells)
        point = pa.compute.find_substring(texts, ".").to_numpy()
        behind = [0 if at < 0 else len(cell) - at - 1 for cell, at in zip(cells, point, strict=True)]
        number = [0] * len(cells)
        given = (metric_rows._ints(column) for column in (number, point, behind))
        return list(metric_rows._with_endings(texts, [ending], *given).to_pylist())

    assert with_zeros(".000", "1", "1.5", "-2.25", "0.125") == ["1.000", "1.500", "-2.250", "0.125"]
    assert with_zeros("", "1", "1.5") == ["1", "1.5"]
