"""Logs whose rows take turns: which columns are believed to tell the rows apart."""

import io

import pytest

from profsvc import formats
from profsvc.errors import BrokenInputError, UsageError
from profsvc.formats.timeseries.column_mapping import read_columns


def sensors(header: str, rows: list[str], *columns: str) -> dict[tuple[str, int | None], int]:
    """How many samples each sensor of a log has, by its name and the index of its GPU."""
    text = "\n".join([f"time (s),{header}", *(f"{n},{row}" for n, row in enumerate(rows)), ""])
    _, batches = formats.read(io.BytesIO(text.encode()), columns=read_columns(columns))
    tables = [batch.tables for batch in batches]
    counts = {}
    for table in tables:
        for place, size in table["samples"]["sensor_index"].value_counts().items() if "samples" in table else ():
            counts[place] = counts.get(place, 0) + size
    found = next(table["sensors"] for table in tables if "sensors" in table)
    gpus = found["gpu_index"].astype(object).where(found["gpu_index"].notna(), None)
    return {
        (name, gpu): counts.get(n, 0) for n, name, gpu in zip(found["sensor_index"], found["name"], gpus, strict=True)
    }


def test_an_index_is_believed_in_any_order():
    assert sensors("gpu_index,power_w", ["0,1.5", "0,2.5", "1,3.5"]) == {("power_w", 0): 2, ("power_w", 1): 1}
    assert sensors("GPU ID,power_w", ["GPU 3,1.5", "GPU 3,2.5"]) == {("power_w", 3): 2}


def test_a_lost_reading_does_not_hide_the_turns():
    rows = [f"{n % 4},{n}.5" for n in range(80)]
    del rows[41]
    assert sensors("gpu,power_w", rows) == {("power_w", gpu): 20 - (gpu == 1) for gpu in range(4)}


@pytest.mark.parametrize(
    "cells",
    [["0", "0", "0", "0"], ["0", "1"], ["1", "0", "0", "1", "1", "0"], [str(n) for n in range(9)]],
    ids=["one board", "too few", "no order", "a count"],
)
def test_what_takes_no_turns_is_a_reading(cells):
    found = sensors("gpu,power_w", [f"{cell},1.5" for cell in cells])
    assert found == {("gpu", None): len(cells), ("power_w", None): len(cells)}


def test_beside_a_total_each_row_is_of_its_processor():
    once = sensors("cpu,power_w", ["-,9.5", "0,1.5", "8,2.5"])
    assert once == {("- power_w", None): 1, ("0 power_w", None): 1, ("8 power_w", None): 1}
    many = sensors("cpu,power_w", ["-,9.5", *(f"{n},1.5" for n in range(100))] * 2)
    assert len(many) == 101
    assert set(many.values()) == {2}


def test_numbers_and_names_of_sensors():
    assert sensors("id,power_w", ["7,1.5", "9,2.5"] * 3) == {("7 power_w", None): 3, ("9 power_w", None): 3}
    assert sensors("id,power_w", ["0,1.5", "1,2.5", "2,3.5"]) == {("power_w", None): 3}
    assert sensors("host,power_w", ["a,1.5", "a,2.5"]) == {("power_w", None): 2}


def test_the_user_says_what_tells_the_rows_apart():
    rows = ["a,0,1.5", "a,0,2.5", "b,1,3.5"]
    assert sensors("x,y,power_w", rows, "x=name", "y=gpu") == {("a power_w", 0): 2, ("b power_w", 1): 1}
    assert sensors("x,y,power_w", ["a,q,1.5"], "y=gpu") == {("q power_w", None): 1}
    with pytest.raises(UsageError, match="not a unit of gpu"):
        read_columns(["y=gpu:W"])


def test_more_sensors_than_any_log_has_are_refused():
    rows = [f"s{n},1.5" for n in range(2001)]
    with pytest.raises(BrokenInputError, match="2001 different names"):
        sensors("what,power_w", rows, "what=name")


def test_a_log_of_any_script_is_none_of_amd_smi():
    text = "timestamp,gpu,power\n" + "".join(f"{1789515524 + n // 2},{n % 2},{n}.5\n" for n in range(6))
    reader, batches = formats.read(io.BytesIO(text.encode()))
    assert reader.NAME == "timeseries"
    (table,) = (batch.tables["sensors"] for batch in batches if "sensors" in batch.tables)
    assert table[["name", "unit", "gpu_index"]].to_numpy().tolist() == [
        ["power", "unknown", 0],
        ["power", "unknown", 1],
    ]


@pytest.mark.parametrize("rows", [["a", "b"] * 3, ["a"] * 3 + ["b"] * 3], ids=["by turns", "one below the other"])
def test_each_series_is_a_sensor(rows):
    found = sensors("Series,Value", [f"{cell},1.5" for cell in rows])
    assert found == {("a Value", None): 3, ("b Value", None): 3}
    found = sensors("Series,Value", [f"gpu {'ab'.index(cell)},1.5" for cell in rows])
    assert found == {("Value", 0): 3, ("Value", 1): 3}


@pytest.mark.parametrize(
    ("header", "cells", "is_key"),
    [
        ("what", ["L1", "L2", "L3"] * 2, True),
        ("what", ["idle"] * 3 + ["load"] * 3, False),
        ("what", ["idle", "idle", "load", "load"] * 3, False),
        ("what", ["on", "off"] * 3, False),
        ("what", ["n/a", "b"] * 3, False),
        ("what", ["5 W", "6 W"] * 3, False),
        ("Hot [Ja/Nein]", ["Ja", "Nein"] * 3, False),
        ("what", ["a", ""] * 3, False),
    ],
)
def test_words_that_repeat_in_one_order_tell_the_rows_apart(header, cells, is_key):
    found = sensors(f"{header},power_w", [f"{cell},1.5" for cell in cells])
    assert (("power_w", None) not in found) == is_key
    assert sum(count for (name, _), count in found.items() if name.endswith("power_w")) == len(cells)


def test_beside_an_index_other_words_tell_nothing():
    found = sensors("gpu_index,model,power_w", ["0,A30,1.5", "1,T4,2.5"] * 3)
    assert found == {("power_w", 0): 3, ("power_w", 1): 3}
