"""Columns that the user names, and where channels sit: what is read, and what is refused with which words."""

import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc import formats
from profsvc.errors import BrokenInputError, InputError, UsageError
from profsvc.formats.timeseries.column_mapping import read_columns
from profsvc.formats.timeseries.sensor_positions import read_positions, with_positions
from profsvc.tables import frame

LOG = "t0;P;T1;Note\n0,5;12,5;20,5;a\n1,5;13,5;OPEN;b\n"


def read(text: str | bytes, *columns: str) -> tuple[dict[str, list], list]:
    """The values by sensor, with quantity and unit, and the batches."""
    data = text if isinstance(text, bytes) else text.encode()
    reader, found = formats.read(io.BytesIO(data), columns=read_columns(columns))
    assert reader.NAME == "timeseries"
    batches = list(found)
    (sensors,) = (batch.tables["sensors"] for batch in batches if "sensors" in batch.tables)
    samples = next(batch.tables["samples"] for batch in batches if "samples" in batch.tables)
    out = {}
    for row in sensors.to_dict("records"):
        mine = samples[samples["sensor_index"] == row["sensor_index"]]
        values = mine["value"].astype(object).where(mine["value"].notna(), None).tolist()
        out[row["name"]] = [row["quantity"], row["unit"], values]
    return out, samples["elapsed_ns"].tolist()[: len(out[next(iter(out))][2])], batches


def test_quantities_and_units_are_those_that_are_named():
    found, elapsed, batches = read(LOG, "t0=time:ms", "P=power:mW", "T1=temperature:C")
    assert found == {"P": ["power", "W", [0.0125, 0.0135]], "T1": ["temperature", "degC", [20.5, None]]}
    assert elapsed == [0, 1_000_000]
    assert [batch.facts["columns_left_out"] for batch in batches if batch.facts] == ["Note"]
    assert batches[-1].message == "columns without readings are left out: Note"


def test_other_columns_are_read_as_always_and_some_are_left_out():
    text = "Time (s),Power (W),Temp (C),x\n0,1.5,20,7\n1,2.5,21,8\n"
    found, _, _ = read(text, "x=skip", "Power (W)=power:mW")
    assert found == {"Power": ["power", "W", [0.0015, 0.0025]], "Temp": ["temperature", "degC", [20, 21]]}


def test_a_row_of_units_does_not_change_what_is_named():
    found, _, _ = read("Time;P;T\ns;W;degF\n0;1;32\n1;2;212\n", "P=power:mW")
    assert found["P"] == ["power", "W", [0.001, 0.002]]
    assert found["T"][2][0] == 0


def test_numbers_need_no_header():
    found, elapsed, batches = read("a note\nh1,h2,h3\n0.5,12.5,1\n1.5,13.5,2\n", "#1=time:s", "#2=power:W")
    assert found == {"#2": ["power", "W", [12.5, 13.5]]}
    assert elapsed == [0, 10**9]
    assert (batches[-1].lines_stored, batches[-1].lines_skipped) == (2, 2)


def test_a_number_tells_columns_of_one_name_apart():
    text = "Timestamp,T,T\n2024-01-13 00:00:00,1,2\n"
    with pytest.raises(BrokenInputError, match="2 columns are named 'T'; give the column by its number, #2 or #3"):
        read(text, "T=temperature:C")
    found, _, _ = read(text, "#2=temperature:C", "#3=skip", "Timestamp=time")
    assert found == {"T": ["temperature", "degC", [1]]}


def test_a_date_and_a_time_stand_in_two_columns():
    found, elapsed, batches = read(
        "Tag,Zeit,W1\n13.06.2024,10:00:00,5\n13.06.2024,10:00:02,6\n", "Tag=time", "Zeit=time", "W1=power:W"
    )
    assert found == {"W1": ["power", "W", [5, 6]]}
    assert elapsed == [0, 2 * 10**9]
    assert batches[-1].facts["clock"] == "local time, no zone given"


def test_times_that_the_header_calls_utc_are_utc():
    _, _, batches = read("Start (UTC),P\n2024-06-03 10:00:00,5\n", "Start (UTC)=time", "P=power:W")
    samples = next(batch.tables["samples"] for batch in batches if "samples" in batch.tables)
    assert samples["time_ns"].tolist() == [1717408800 * 10**9]


def test_quantities_without_a_unit_of_their_own():
    found, _, _ = read("Time (s),load,clk\n0,0.5,1410\n", "load=utilization", "clk=clock:MHz")
    assert found == {"load": ["utilization", "1", [0.5]], "clk": ["clock", "Hz", [1.41e9]]}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            ["t0=time:ms", "Q=power:W"],
            "the file has no column 'Q' of --column; it has 't0', 'P', 'T1', 'Note'",
        ),
        (["Q=power:W"], "no line of the file is a header with 'Q'"),
        (["P=power:W"], "no column is a time; give it with --column NAME=time"),
        (
            ["t0=time:ms", "P=power"],
            "column 'P' has no unit of power; add it: --column 'P=power:UNIT', such as W or mW",
        ),
        (["t0=time", "P=power:W"], "time '0,5' is a number without a unit"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(columns, words):
    with pytest.raises(BrokenInputError) as caught:
        read(LOG, *columns)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("P", "must look like NAME=QUANTITY"),
        ("=power", "must look like NAME=QUANTITY"),
        ("P=power:", "must look like NAME=QUANTITY"),
        ("P=powr:W", "no quantity named 'powr'; did you mean 'power'"),
        ("P=power:degC", "'degC' is not a unit of power; give one of W, mW"),
        ("P=skip:W", "'W' is not a unit of skip"),
    ],
)
def test_an_odd_option_is_a_wrong_question(text, words):
    with pytest.raises(UsageError) as caught:
        read_columns([text])
    assert words in str(caught.value)
    with pytest.raises(UsageError, match="twice"):
        read_columns(["P=power:W", "P=skip"])


def test_a_label_may_hold_an_equals_sign():
    found, _, _ = read("t,a=b\n0,5\n", "t=time:s", "a=b=power:W")
    assert found == {"a=b": ["power", "W", [5]]}


@given(
    data=st.binary(max_size=120)
    | st.lists(st.sampled_from([b"t0", b"P", b";", b"\n", b"0,5", b'"', b"x"]), max_size=30).map(b"".join),
    columns=st.sampled_from([("t0=time:ms", "P=power:W"), ("#1=time:s", "#2=power:W"), ("P=power:W",), ("#3=skip",)]),
)
def test_any_bytes(data, columns):
    try:
        for _ in formats.read(io.BytesIO(data), columns=read_columns(columns))[1]:
            pass
    except InputError:
        pass


def test_places_are_put_on_the_channels_they_name():
    sensors = frame(
        "sensors", {"sensor_index": [0, 1], "quantity": ["temperature"] * 2, "name": ["T1", "T2"], "unit": ["degC"] * 2}
    )
    placed = with_positions(sensors, read_positions(["T2=3.5,-12"]))
    assert placed["x_mm"].fillna(-1).tolist() == [-1, 3.5]
    assert placed["y_mm"].fillna(-1).tolist() == [-1, -12]
    with pytest.raises(BrokenInputError, match="no channel named 'T3'; did you mean 'T1' or 'T2'"):
        with_positions(sensors, read_positions(["T3=1,1"]))


@pytest.mark.parametrize("text", ["T1", "T1=1", "T1=1,2,3", "T1=a,b", "=1,2", "T1=nan,1", "T1=1,inf", "T1=1e9,1"])
def test_an_odd_place_is_a_wrong_question(text):
    with pytest.raises(UsageError, match="must look like CHANNEL=X,Y in mm"):
        read_positions([text])


@pytest.mark.parametrize(("order", "first"), [("dmy", "2021-03-04"), ("mdy", "2021-04-03")])
def test_the_order_of_dates_may_be_named(order, first):
    text = "Date,Time,P (W)\n04-03-2021,13:32:39,1.5\n04-03-2021,13:32:40,2.5\n"
    found, elapsed, batches = read(text, f"Date=time:{order}")
    assert (found, elapsed) == ({"P": ["power", "W", [1.5, 2.5]]}, [0, 10**9])
    assert batches[-1].facts["date_order"] == order
    stamp = int(batches[-1].tables["samples"]["local_ns"].iloc[0])
    assert stamp == pd.Timestamp(f"{first} 13:32:39").value


def test_an_order_that_the_dates_contradict_is_refused():
    text = "Date,Time,P (W)\n04-23-2021,13:32:39,1.5\n"
    with pytest.raises(BrokenInputError, match="are not all dmy, as --column or the format says"):
        read(text, "Date=time:dmy")
    with pytest.raises(UsageError, match="ymd, dmy, mdy"):
        read_columns(["Date=time:ydm"])


def test_a_time_that_another_program_wrote_into_a_log_of_a_tool_is_named():
    text = "timestamp, power.draw [W]\n03-11-2026 15:13:16, 75.5\n"
    with pytest.raises(BrokenInputError, match="--column 'NAME=time:mdy'"):
        list(formats.read(io.BytesIO(text.encode()))[1])
    found, _, batches = read(text, "timestamp=time:mdy")
    assert found == {"power.draw": ["power", "W", [75.5]]}
    assert int(batches[-1].tables["samples"]["local_ns"].iloc[0]) == pd.Timestamp("2026-03-11 15:13:16").value


@pytest.mark.parametrize("told", [(), ("Comment=skip",)])
@pytest.mark.parametrize("rows", [60, 4000])
def test_a_comment_that_has_no_cell_leaves_its_row_whole(told, rows):
    text = "x\tT5\tT6\tComment\n" + "".join(f"{n / 4}\t{n % 50}.5\t\n" for n in range(rows - 1))
    text += "1e6\t3\t4\tdoor open"
    found, elapsed, batches = read(text, "x=time:s", "T5=temperature:degC", *told)
    assert found["T5"][2] == [n % 50 + 0.5 for n in range(rows - 1)] + [3]
    assert elapsed[:2] == [0, 250_000_000]
    assert (sum(one.lines_stored for one in batches), sum(one.lines_rejected for one in batches)) == (rows, 0)


def test_a_column_that_is_left_out_may_lack_cells_and_another_may_not():
    assert read("x\tP\tl\n0\t1\n1\t2\n", "x=time:s", "P=power:W", "l=skip")[0]["P"][2] == [1, 2]
    for text in ("x\tP\tl\n0\t1\n1\t2\n", "x\tl\tP\n0\t1\n1\t2\n", "x,P,Comment\n0,1\n1,2\n"):
        _, found = formats.read(io.BytesIO(text.encode()), columns=read_columns(["x=time:s", "P=power:W"]))
        assert sum(one.lines_rejected for one in found) == 2
