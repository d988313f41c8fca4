"""Metrics of wide pages come back from the store as they went in, cell by cell and bit by bit."""

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, text

from profsvc import formats, store
from profsvc.errors import DomainError, InputError
from profsvc.formats.parsing.stream import open_stream
from profsvc.store.connection.transactions import reading, writing
from profsvc.store.ingest.writers import wide_metrics as wide_store
from profsvc.store.queries.launches.wide_metrics import wide_values
from profsvc.store.results.writer import RANGE_KEYS
from profsvc.store.schema.contents.wide_metrics import MAX_BLOCK_LAUNCHES, RAW_TEXT_SQL, VALUE_SQL
from profsvc.tables import Batch, Wide, WideColumns, frame, unpivot
from tests.store.conftest import info, only_on

ROOT = Path(__file__).parents[4] / "fixtures"
Cells = Sequence[Sequence[str]]
KNOWN = ("launch_id", "section", "metric", "raw_text", "unit", "value", "si_unit", "reason", "line")
TABLES = ("wide_blocks", "wide_cells", "wide_constants", "wide_lists")


def columns_of(width: int, factors: Sequence[float] = (1.0, 0.01, 1e-9)) -> WideColumns:
    names = tuple(f"m{place}" for place in range(width))
    units = tuple(("inst", "%", "ns")[place % 3] for place in range(width))
    chosen = np.array([factors[place % len(factors)] for place in range(width)])
    return WideColumns(names, units, tuple(("inst", "1", "s")[place % 3] for place in range(width)), chosen)


def wide_of(cells: Cells, columns: WideColumns, first: int = 0) -> Wide:
    """What a reader makes of cells with points for decimals and commas for thousands."""
    encoded = [cell.encode() for row in cells for cell in row]
    ends = np.cumsum([len(cell) for cell in encoded], dtype=np.int32)
    bounds = np.stack([ends - [len(cell) for cell in encoded], ends], axis=1).astype(np.int32)
    shape = (len(cells), len(columns.metrics))
    values = np.full(shape, np.nan)
    reasons = {}
    for row, of_launch in enumerate(cells):
        for place, cell in enumerate(of_launch):
            try:
                values[row, place] = float(cell.replace(",", ""))
            except ValueError:
                if cell:
                    reasons[row, place] = "text"
    letters = np.frombuffer(b"".join(encoded), np.uint8)
    lines = np.arange(first + 3, first + 3 + len(cells))
    return Wide(columns, first, lines, letters, bounds.reshape(*shape, 2), values * columns.factors, reasons)


def named(*wanted: str) -> Callable[[str | None, str], str | None]:
    return lambda _, metric: metric if metric in wanted else None


def launches_of(wide: Wide) -> Batch:
    index = list(range(wide.first_launch, wide.first_launch + len(wide.lines)))
    rows = {"launch_index": index, "kernel": ["k"] * len(index), "line": wide.lines.tolist()}
    return Batch({"launches": frame("launches", rows)}, lines_stored=len(index), wide=wide)


def put(engine: Engine, *wides: Wide, content: str = "a") -> store.StoredUpload:
    return store.write_upload(engine, info(content), store.RunInfo(name=content), map(launches_of, wides))


def rows_of(engine: Engine, **only: Any) -> list[tuple[Any, ...]]:
    rows = store.select(engine, "v1_metrics", **only)
    return sorted((tuple(row[name] for name in KNOWN) for row in rows), key=repr)


def expected(stored: store.StoredUpload, *wides: Wide) -> list[tuple[Any, ...]]:
    found = []
    for wide in wides:
        for row in unpivot(wide).astype(object).replace({np.nan: None}).to_dict("records"):
            launch = stored.upload_id * store.schema.column_types.IDS_PER_UPLOAD + row["launch_index"] + 1
            empty = {name: row[name] or None for name in ("unit", "si_unit")}
            found.append((launch, *((row | empty)[name] for name in KNOWN[1:])))
    return sorted(found, key=repr)


def count(engine: Engine, table: str) -> int:
    with reading(engine) as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


NUMBERS = ("1", "1,234", "12.50", "12.00", "0.10", ".5", "5.", "-0.01", "1e5", "n/a", "", "x y", "1,234,567.891", "00",
           "9007199254740993", "1,070,236,956,612,287.38", "12345678901234567890", "0.1234567890123456789", "a\u00e4",
           "12 (5; 7)", '"', "\\", "9,007,199,254,740,991", "16,215,711,463,822.54", "-", "1-2", "\u20ac1")  # fmt: skip


@pytest.mark.parametrize("launches", [1, 2, MAX_BLOCK_LAUNCHES - 1, MAX_BLOCK_LAUNCHES, 2 * MAX_BLOCK_LAUNCHES + 5])
def test_every_cell_comes_back(engine: Engine, launches: int) -> None:
    rng = random.Random(launches)
    columns = columns_of(9)
    kinds = [
        NUMBERS,
        ("7",),
        ("", "3.0"),
        ("1.50", "2.00", "10.25"),
        NUMBERS[:5],
        ("",),
        ("n/a",),
        ("0.000000",),
        NUMBERS,
    ]
    wide = wide_of([[rng.choice(kind) for kind in kinds] for _ in range(launches)], columns)
    stored = put(engine, wide)
    assert rows_of(engine) == expected(stored, wide)
    assert count(engine, "wide_blocks") == math.ceil(launches / MAX_BLOCK_LAUNCHES)


def test_parts_of_a_table_become_whole_blocks(engine: Engine) -> None:
    columns, rng = columns_of(3), random.Random(1)
    cells = [[f"{rng.random() * 10**6:.2f}" for _ in range(3)] for _ in range(200)]
    cuts = [0, 3, 10, 100, 101, 164, 200]
    wides = [wide_of(cells[a:b], columns, a) for a, b in pairwise(cuts)]
    stored = put(engine, *wides)
    assert rows_of(engine) == expected(stored, *wides)
    assert count(engine, "wide_blocks") == 4
    assert count(engine, "metrics") == 0


def test_tables_with_other_columns_have_blocks_of_their_own(engine: Engine) -> None:
    first, other = columns_of(2), columns_of(3)
    wides = [wide_of([["1", "2"]] * 3, first), wide_of([["1", "2", "3"], ["4", "5", "6"]], other, 3)]
    stored = put(engine, *wides)
    assert rows_of(engine) == expected(stored, *wides)
    assert count(engine, "wide_blocks") == 2


@pytest.mark.parametrize("launches", [1, 2, MAX_BLOCK_LAUNCHES + 7])
def test_sections_and_lines_of_pages_with_a_row_a_metric(engine: Engine, launches: int) -> None:
    rng, plain = random.Random(launches), columns_of(6)
    columns = replace(plain, metrics=("m", "m", "n", "m", "n", "o"), sections=("S", "T", "S > B", "", "S", "S"))
    kinds = [("1.5", "2", ""), ("7",), ("n/a",), ("n/a", "3.25"), ("",), ("8", "")]
    wide = wide_of([[rng.choice(kind) for kind in kinds] for _ in range(launches)], columns)
    near, far = np.arange(6), np.array([rng.choice([3, 4, 12_345]) for _ in range(6 * launches)]).reshape(-1, 6)
    offsets = np.where(np.arange(6) < 2, near, np.where(np.arange(6) == 5, 0, far)).astype(np.int32)
    wide = replace(wide, lines=np.arange(launches) * 100_000 + 2, offsets=offsets)
    stored = put(engine, wide)
    assert rows_of(engine) == expected(stored, wide)
    first = stored.upload_id * store.schema.column_types.IDS_PER_UPLOAD + 1
    for section, place in ((None, 3), ("T", 1), ("S", 0)):
        found = wide_values(engine, [first], lambda of, name, to=section: "x" if (of, name) == (to, "m") else None)
        value = wide.values[0, place]
        assert found == ({} if np.isnan(value) else {"x": np.array([value])})


def test_columns_are_written_once_for_all_files(engine: Engine) -> None:
    put(engine, wide_of([["1", "2"]] * 3, columns_of(2)))
    put(engine, wide_of([["3", "2"]] * 3, columns_of(2)), content="b")
    assert (count(engine, "wide_layouts"), count(engine, "wide_columns")) == (1, 2)


def test_columns_that_say_the_same_share_a_list_and_leave_out_zeros(engine: Engine) -> None:
    put(engine, wide_of([["1.500", "1.500", "7"], ["20.000", "20.000", "7"], ["", "", "7"]], columns_of(3)))
    with reading(engine) as connection:
        assert connection.execute(text("SELECT ending, texts FROM wide_lists")).all() == [(".000", "1.5 20 ")]
    assert (count(engine, "wide_cells"), count(engine, "wide_constants")) == (2, 1)


def test_two_columns_of_one_name(engine: Engine) -> None:
    columns = WideColumns(("m", "m"), ("", ""), ("", ""), np.ones(2))
    wide = wide_of([["1", "2"], ["", "4"], ["n/a", "n/a"]], columns)
    stored = put(engine, wide)
    assert [row[2:4] for row in rows_of(engine)] == [row[2:4] for row in expected(stored, wide)]
    ids = [stored.upload_id * store.schema.column_types.IDS_PER_UPLOAD + 1 + index for index in range(3)]
    np.testing.assert_array_equal(wide_values(engine, ids, named("m"))["m"], [1, 4, np.nan])


def test_values_for_the_analysis_are_those_of_the_view(engine: Engine) -> None:
    rng, columns = random.Random(3), columns_of(8)
    wide = wide_of([[rng.choice(NUMBERS) for _ in range(8)] for _ in range(150)], columns)
    stored = put(engine, wide)
    first = stored.upload_id * store.schema.column_types.IDS_PER_UPLOAD + 1
    ids = [first + index for index in [*range(20, 90), 140, 3]]
    found = wide_values(engine, ids, named("m1", "m2", "m7", "other"))
    assert set(found) == {"m1", "m2", "m7"}
    long = store.metrics(engine, stored.upload_id, ids)
    for place in (1, 2, 7):
        odd = long[long["metric"] == f"m{place}"].set_index("launch_id")["value"].reindex(ids).to_numpy()
        both = np.where(np.isnan(odd), found[f"m{place}"], odd)
        np.testing.assert_array_equal(both, [wide.values[launch - first, place] for launch in ids])
    assert wide_values(engine, [], named("m1")) == wide_values(engine, ids, named()) == {}
    assert wide_values(engine, [1], named("m1")) == {}


@pytest.fixture(scope="module")
def calculator() -> Iterator[Engine]:
    engine = create_engine("sqlite://")
    yield engine
    engine.dispose()


FACTORS = st.sampled_from([1.0, 0.01, 1e-9, 1e6, 1024.0])


@given(st.integers(0, 10**15), st.integers(0, 15), FACTORS, st.sampled_from(["", "-"]))
def test_sql_reads_plain_numbers_to_the_last_bit(
    calculator: Engine, whole: int, decimals: int, factor: float, sign: str
) -> None:
    digits = str(whole).zfill(decimals + 1)
    cell = sign + (f"{digits[:-decimals]}.{digits[-decimals:]}" if decimals else digits)
    shown, value = (
        RAW_TEXT_SQL.format(text="t", ending="e", point="instr(t, '.')"),
        VALUE_SQL.format(text="t", factor=":f", point="instr(t, '.')"),
    )
    query = text(f"SELECT {shown}, {value} FROM (SELECT :t AS t, '' AS e)")
    with calculator.connect() as connection:
        assert connection.execute(query, {"t": cell, "f": factor}).one() == (cell, float(cell) * factor)


PAGES = ("ncu_raw/h200_three_launches.csv.gz", "ncu_raw/plain.csv", "ncu_raw/german.csv")


@pytest.mark.parametrize("name", PAGES)
def test_pages_come_back(engine: Engine, name: str) -> None:
    with (ROOT / name).open("rb") as stream:
        batches = list(formats.read(open_stream(stream))[1])
    wides = [batch.wide for batch in batches if batch.wide is not None]
    stored = store.write_upload(engine, info(), store.RunInfo(name="r"), batches)
    every = expected(stored, *wides)
    assert rows_of(engine) == every
    launch = stored.upload_id * store.schema.column_types.IDS_PER_UPLOAD + 2
    assert rows_of(engine, launch_id=launch) == [row for row in every if row[0] == launch]


def test_questions_of_one_launch_or_one_metric(engine: Engine) -> None:
    wide = wide_of([[f"{index}.25", "7", "n/a" if index % 2 else "1"] for index in range(100)], columns_of(3))
    stored = put(engine, wide)
    put(engine, wide, content="b")
    every = expected(stored, wide)
    launch = stored.upload_id * store.schema.column_types.IDS_PER_UPLOAD + 71
    assert rows_of(engine, launch_id=launch) == [row for row in every if row[0] == launch]
    assert rows_of(engine, run_id=stored.run_id, metric="m0") == [row for row in every if row[2] == "m0"]
    assert rows_of(engine, upload_id=stored.upload_id) == every
    if engine.dialect.name == "sqlite":
        answer = store.query(engine, "SELECT sum(value), count(*) FROM v1_metrics WHERE metric = :m", {"m": "m0"})
        assert answer.rows == [(pytest.approx(2 * (4950 + 25)), 200)]


@only_on("sqlite", "plans are the database's own")
@pytest.mark.parametrize(
    "only", ["launch_id = 1000000001", "run_id = 1", "upload_id = 1", "run_id = 1 AND metric = ''"]
)
def test_blocks_are_walked_by_key(engine: Engine, only: str) -> None:
    query = f"EXPLAIN QUERY PLAN SELECT * FROM v1_metrics WHERE {only}"
    with reading(engine) as connection:
        plan = [row[3] for row in connection.exec_driver_sql(query)]
    # The cells of a list have no key.
    assert not [step for step in plan if step.startswith(("MATERIALIZE", "SCAN")) and "SCAN e " not in step], plan
    assert not [step for step in plan if "AUTOMATIC" in step], plan


def test_deleting_a_file_deletes_its_blocks_alone(engine: Engine) -> None:
    wide = wide_of([[str(index), "7"] for index in range(70)], columns_of(2))
    gone, kept = put(engine, wide), put(engine, wide, content="b")
    assert set(TABLES) <= set(RANGE_KEYS)
    store.delete_upload(engine, gone.upload_id)
    assert rows_of(engine) == expected(kept, wide)
    store.delete_run(engine, kept.run_id)
    assert [count(engine, table) for table in TABLES] == [0] * 4


def test_texts_may_lie_in_any_order(engine: Engine) -> None:
    wide = wide_of([["1", "2"], ["3", "41"]], columns_of(2))
    backwards = replace(wide, bounds=wide.bounds[::-1].copy(), values=wide.values[::-1].copy())
    stored = put(engine, backwards)
    assert rows_of(engine) == expected(stored, backwards)


def test_what_does_not_fit_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(2)
    wide = wide_of([["1", "2"], ["3", "4"]], columns)
    with pytest.raises(DomainError, match="metrics of launch 0, but no such launch"):
        store.write_upload(engine, info(), store.RunInfo(), [Batch(wide=wide)])
    monkeypatch.setattr(wide_store, "IDS_PER_UPLOAD", 2)
    with pytest.raises(InputError, match="columns of blocks of 64 launches; split it"):
        put(engine, wide)
    assert store.runs(engine).empty


def test_the_digest_of_columns_says_all_of_them(engine: Engine) -> None:
    given = columns_of(2)
    for number, columns in enumerate(
        (given, columns_of(3), WideColumns(given.metrics, given.units, given.si_units, given.factors * 2))
    ):
        put(engine, wide_of([["1"] * len(columns.metrics)], columns), content=json.dumps(number))
    assert (count(engine, "wide_layouts"), count(engine, "wide_columns")) == (3, 7)
    with writing(engine) as connection:
        assert connection.execute(text("SELECT max(factor) FROM wide_columns")).scalar_one() == 2.0
