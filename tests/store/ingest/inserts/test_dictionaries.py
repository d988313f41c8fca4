"""Numbers of combinations of integers."""

import numpy as np
import pytest
from sqlalchemy import Engine

from profsvc.store.connection.transactions import writing
from profsvc.store.ingest.inserts import dictionaries
from profsvc.store.ingest.inserts.dictionaries import COMBINATION_COLUMNS, Combinations, Names


@pytest.mark.parametrize("bits", [1, 16])
@pytest.mark.parametrize("cached", [3, 100_000])
def test_a_combination_keeps_its_number_whatever_is_cached(engine: Engine, monkeypatch, bits, cached) -> None:
    monkeypatch.setattr(dictionaries, "SLOT_BITS", bits)
    monkeypatch.setattr(dictionaries, "MAX_CACHED_NAMES", cached)
    draw, numbers = np.random.default_rng(5), {}
    with writing(engine) as connection:
        combined, kernel = Combinations(connection, "shapes"), Names(connection, "kernels")["saxpy",]
        for rows in (1, 50, 7, 200, 50):
            columns = [draw.integers(0, 3, rows) for _ in COMBINATION_COLUMNS["shapes"]]
            columns[0] = np.full(rows, kernel)
            columns[1] = np.where(columns[1] == 2, Combinations.NONE, columns[1])
            found = combined.numbers(columns)
            rows_of = zip(*(column.tolist() for column in columns), strict=True)
            for row, number in zip(rows_of, found.tolist(), strict=True):
                assert numbers.setdefault(row, number) == number
    assert len(set(numbers.values())) == len(numbers) > 100


def test_a_name_that_another_upload_writes_in_the_same_moment_keeps_its_number(engine: Engine, monkeypatch) -> None:
    other = Names(engine, "texts").numbers([("b",)])
    late = Names(engine, "texts")
    known, asked = late._known, []

    def first_too_early(connection, names):
        asked.append(names)
        return known(connection, names) if len(asked) > 1 else {}

    monkeypatch.setattr(late, "_known", first_too_early)
    found = late.numbers([("c",), ("b",), ("a",)])
    assert found[1:2] == other
    assert Names(engine, "texts").numbers([("c",), ("b",), ("a",)]) == found
    assert len(set(found)) == 3
