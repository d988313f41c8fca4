"""Blocks of rows of a log of any meter read at once give what the same lines give one by one."""

import io
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats import generic_timeseries
from profsvc.formats.timeseries.column_mapping import read_columns
from profsvc.formats.timeseries.tables import lines as table_lines
from profsvc.formats.timeseries.tables.blocks import BlockPlan, parse
from tests.formats.both_ways import READERS, parts_taken
from tests.inputs.long_exports import meter_log

agree = READERS["meters"].agree

HEADER = "Time,Power (W),Board (degC),gpu_index,Note"
ISO = BlockPlan(",", 3, (0,), False, (1, 2), (), ".")
COUNTS = ISO._replace(counts=True)


def stamps(form, count, step=timedelta(milliseconds=250), start=datetime(2026, 3, 15, 23, 59, 50)):
    return [(start + n * step).strftime(form) for n in range(count)]


def rows(times, first=0):
    return [f"{time},{60 + n * 1.37:.2f},{40 + n / 7:.3f},{n % 2},ok\n" for n, time in enumerate(times, first)]


def log(*lines, header=HEADER):
    return f"{header}\n{''.join(lines)}".encode()


def test_most_rows_of_a_long_log_are_taken_at_once(monkeypatch):
    taken = parts_taken(monkeypatch, table_lines)
    agreed = list(generic_timeseries.read(io.BytesIO("".join(meter_log(3000)).encode())))
    assert sum(batch.lines_stored for batch in agreed) == 3000
    # Two walks, each with a first row that goes alone.
    assert sum(part.rows for part in taken if part) > 2 * 2800


def test_a_long_log_gives_the_same_both_ways():
    found = agree("".join(meter_log(300)).encode(), small=200, block=4000)
    assert (len(found[0]["samples"]), found[1]) == (1200, [300, 1, 0])


@pytest.mark.parametrize(
    ("label", "texts", "values"),
    [
        ("Throttling [Yes/No]", ["No", "Yes", ""], [0.0, 1.0, None]),
        ("Drosselung [Ja/Nein]", ["Nein", "Ja", "nein"], [0.0, 1.0, 0.0]),
        ("Throttling [No/Yes]", ["No", "No", "Yes"], [1.0, 1.0, 0.0]),
        ("fan", ["on", "off", "N/A"], [1.0, 0.0, None]),
        ("limited", ["True", "False", "True"], [1.0, 0.0, 1.0]),
    ],
)
def test_texts_of_two_states_are_one_and_zero(label, texts, values):
    times = stamps("%Y-%m-%d %H:%M:%S.%f", 300)
    lines = [f"{time},{60 + n}.5,{texts[n % 3]}\n" for n, time in enumerate(times)]
    tables = agree(log(*lines, header=f"Time,Power (W),{label}"), small=200, block=4000)[0]
    sensors = {row["sensor_index"]: row for row in tables["sensors"]}
    states = [one["value"] for one in tables["samples"] if sensors[one["sensor_index"]]["quantity"] == "state"]
    assert states == values * 100
    (sensor,) = [row for row in sensors.values() if row["quantity"] == "state"]
    assert (sensor["name"], sensor["unit"]) == (label.split(" [")[0], "1")


@pytest.mark.parametrize("texts", [["Yes", "No", "Maybe"], ["Yes", "No", "1"], ["P0", "P8", "P0"]])
def test_texts_that_are_no_states_are_left_out(texts):
    times = stamps("%Y-%m-%d %H:%M:%S.%f", 300)
    lines = [f"{time},{60 + n}.5,{texts[n % 3] if n > 250 else texts[0]}\n" for n, time in enumerate(times)]
    tables = agree(log(*lines, header="Time,Power (W),Limit [Yes/No]"), small=200, block=4000)[0]
    assert {row["quantity"] for row in tables["sensors"]} <= {"power", "unknown"}


def test_plain_rows_are_read_at_once():
    part = parse(b"2026-03-15 23:59:59.5,1.5,-2\n2026-03-16 00:00:00.25,7,.5\n", ISO)
    assert (part.rows, [column.tolist() for column in part.numbers]) == (2, [[1.5, 7], [-2, 0.5]])
    assert (part.dated.dates, part.dated.rows.tolist()) == (["2026-03-15", "2026-03-16"], [0, 1])
    assert part.dated.times.tolist() == [86_399_500_000_000, 250_000_000]
    assert np.isnan(parse(b"2026-03-15 10:00:00,,2\n2026-03-15 10:00:00,3,2\n", ISO).numbers[0]).tolist() == [
        True,
        False,
    ]
    counts = parse(b"0.25,1.5,1e3\n17,7,5.\n", COUNTS).counts
    assert (counts.digits.tolist(), counts.decimals.tolist()) == ([25, 17], [2, 0])


@pytest.mark.parametrize(
    "odd",
    [
        b"2026-03-15 10:00:00,1.5\n",
        b"2026-03-15 10:00:00,1.5,2",
        b"2026-03-15 10:00:00,1.5, \n",
        b"2026-03-15 10:00:00,1.5,2,3\n",
        b"2026-03-15 10:00:00,1.5,nan\n",
        b"2026-03-15 10:00:00,1.5,1e400\n",
        b'2026-03-15 10:00:00,"1.5",2\n',
        b"2026-03-15 10:00:00,1.5,2\r3\n",
        b"2026-03-15 10:60:00,1.5,2\n",
        b"2026-03-15 24:00:00,1.5,2\n",
        b"2026-03-15 10:00:00Z,1.5,2\n2026-03-15 10:00:01,1.5,2\n",
        b"2026-03-15,1.5,2\n",
        b"1773619200,1.5,2\n",
        b"\n",
    ],
)
def test_what_is_not_plain(odd):
    assert parse(odd, ISO) is None


@pytest.mark.parametrize("odd", [b".5", b"-1", b"+1", b"1e3", b"1.2.3", b"", b"x", b"0" * 25, b"2026-03-15 10:00"])
def test_what_is_no_plain_count(odd):
    assert parse(odd + b",1.5,2\n", COUNTS) is None
    assert parse(b"7,1.5,2\n" + odd + b",1.5,2\n", COUNTS) is None


def test_texts_are_numbered_as_they_come():
    plan = BlockPlan(",", 3, (0,), True, (2,), (1,), ".")
    texts = parse(b"1, b,5\n2,a,5\n3, b,5\n", plan).texts[1]
    assert (texts.distinct, texts.codes.tolist(), texts.first.tolist()) == (["b", "a"], [0, 1, 0], [0, 1])
    assert parse(b"1,b,5\n2, b,5\n", plan) is None
    assert parse("".join(f"1,{n},5\n" for n in range(513)).encode(), plan) is None


FORMS = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%d %H:%M:%S+02:00", "%Y/%m/%d %H:%M",
    "%m/%d/%Y %I:%M:%S %p", "%d.%m.%Y %H:%M:%S.%f", "%H:%M:%S", "%H:%M:%S.%f", "%Y-%m-%d", "%d-%b-%Y %H:%M:%S",
    "%Y%m%d_%H%M%S", "'%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S:123",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_stamps(form):
    found = agree(log(*rows(stamps(form, 60))))
    assert found[1] == [60, 1, 0]
    agree(log(*rows(stamps(form, 20, timedelta(hours=7))), header=HEADER.replace("Time", "Time (UTC)")))
    agree(log(*rows(stamps(form, 20, timedelta(hours=-7)))))


def test_stamps_of_many_widths():
    start = datetime(2026, 9, 28, 9, 59, 58)
    moments = [start + n * timedelta(milliseconds=500) for n in range(60)]
    agree(log(*rows([moment.isoformat() for moment in moments])))
    days = [start + n * timedelta(hours=5) for n in range(60)]
    agree(log(*rows([f"{day.month}/{day.day}/{day.year} {day.hour}:{day:%M:%S}" for day in days])))


@pytest.mark.parametrize("header", ["Date,Time,Power (W)", "Time,Date,Power (W)", "No,Date,Time,Power (W)"])
def test_a_date_and_a_time_beside_each_other(header):
    names = header.split(",")
    dates, times = stamps("%m/%d/%Y", 60), stamps("%H:%M:%S.%f", 60)
    lines = [
        ",".join({"No": str(n), "Date": date, "Time": time}.get(name, f"{n}.25") for name in names) + "\n"
        for n, (date, time) in enumerate(zip(dates, times, strict=True))
    ]
    found = agree(log(*lines, header=header))
    assert found[1] == [60, 1, 0]


@pytest.mark.parametrize("unit", ["", " (s)", " (ms)", " (ns)", " (min)", " (h)"])
@pytest.mark.parametrize("first", [0, 1773619200, 1773619200123])
@pytest.mark.parametrize("digits", [0, 3, 12])
def test_counts(unit, first, digits):
    times = [f"{first + n / 8:.{digits}f}" for n in range(30)]
    agree(log(*rows(times), header=HEADER.replace("Time", "Time" + unit)))


@pytest.mark.parametrize("decimals", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("sign", [";", "\t", ","])
@pytest.mark.parametrize("decimal", [".", ","])
def test_signs(decimals, sign, decimal):
    lines = [
        f"{time}{sign}{n * 0.37:.{decimals}f}".replace(".", decimal) + f"{sign}{n}\n"
        for n, time in enumerate(stamps("%Y-%m-%d %H:%M:%S", 30), 3)
    ]
    agree(log(*lines, header=sign.join(("Time", "Power (W)", "Count"))))
    agree(log(*lines, "2026-03-16 10:00:00" + sign + "1.234,5" + sign + "7\n", header=sign.join(("Time", "P", "n"))))


@pytest.mark.parametrize("empty", ["", " ", "N/A", "nan"])
def test_cells_without_a_number(empty):
    times = stamps("%Y-%m-%d %H:%M:%S", 60)
    for lines in (
        [f"{time},{n}.5,{empty},{empty if n % 3 else n}\n" for n, time in enumerate(times)],
        [f"{time},{n}.5,7,{empty if n > 30 else n}\n" for n, time in enumerate(times)],
        [f"{time},{empty if n < 30 else 8},7,{n}.123\n" for n, time in enumerate(times)],
    ):
        agree(log(*lines, header="Time,Power (W),Board (degC),n"))
        agree(log(*(f"{n % 2},{line}" for n, line in enumerate(lines)), header="gpu,Time,Power (W),Board (degC),n"))


ODD = (
    "\n", ",,,,\n", "# pause\n", HEADER + "\n", "no data\n", "2026-03-15 23:59:59,61.5,45.5,0\n",
    "2026-03-15 23:59:59,61.5,45.5,0,ok,\n", "2026-03-15 23:59:59,61.5,45.5,0,ok,x\n",
    "2026-03-15 23:59:59,,45.5,0,ok\n", "2026-03-15 23:59:59,N/A,45.5,0,ok\n", "2026-03-15 23:59:59,61.5,OPEN,0,ok\n",
    "2026-03-15 23:59:59,9.91E+37,45.5,0,ok\n", "2026-03-15 23:59:59,61.5,-300,0,ok\n",
    "2026-03-15 23:59:59,1e400,45.5,0,ok\n", "2026-03-15 23:59:59,+61.5,45.5,0,ok\n",
    "2026-03-15 23:59:59, 61.5 , 45.5,0,ok\n", '2026-03-15 23:59:59,"61.5",45.5,0,"o,k"\n',
    "2026-03-15 23:59:59,61.5,45.5,0,\u00e4\n", "2026-03-15 23:59:59,61.5,45.5,7,61.5 W\n",
    "2026-03-15 23:59:59,61.5,45.5,x,7\n", "2026-03-15 23:59:59,61.5,45.5,,7.25\n",
    "2026-03-15 23:59:59,1.234.567,45.5,0,ok\n", "2026-03-15 23:59:59Z,61.5,45.5,0,ok\n",
    "2026-02-30 23:59:59,61.5,45.5,0,ok\n", "2026-03-15 23:59:59.123456789012,61.5,45.5,0,ok\n",
    "15.03.2026 23:59:59,61.5,45.5,0,ok\n", "23:59:59,61.5,45.5,0,ok\n", "1773619199,61.5,45.5,0,ok\n",
    ",61.5,45.5,0,ok\n", "2026-03-15 23:59:59,61.5 W,45.5 degC,0,ok\n", "2026-03-15 23:59:59,61.5,45.5,0,ok\r\n",
    "Time,Volt (V)\n", "x,61.5,45.5,0,ok\n", "2026-03-15 23:59:59,0x1F,45.5,0,ok\n",
    "2026-03-15 23:59:59,61.5,45.5,0,ok", "2026-03-15 23:59", "1773619199.5,61.5,45.5,0,ok\n",
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S", "%H:%M:%S"])
def test_odd_lines_among_plain_ones(odd, form):
    plain = rows(stamps(form, 30))
    agree(log(*plain[:15], odd, *plain[15:]), small=80)
    agree(log(*plain[:15], odd), small=80)


def test_readings_of_another_clock_stay_where_they_stand():
    plain = rows(stamps("%Y-%m-%d %H:%M:%S", 6))
    found = agree(log(*plain[:3], "10:00:00,61.5,45.5,0,ok\n", *plain[3:], header=HEADER.replace("gpu_index", "n")))
    samples = [(row["line"], row["local_ns"] is None) for row in found[0]["samples"] if row["sensor_index"] == 0]
    assert samples == [(line, line == 5) for line in range(2, 9)]


@pytest.mark.parametrize("texts", [["0", "1", "2"], ["GPU 0", "GPU 1"], ["inlet", "outlet"], ["0"], ["", "a"], ["5 W"]])
@pytest.mark.parametrize("name", ["gpu_index", "Sensor", "gpu", "Comment", "id"])
def test_rows_that_take_turns(texts, name):
    times = stamps("%H:%M:%S.%f", 40)
    lines = [f"{time},{texts[n % len(texts)]},{n}.5,{n}\n" for n, time in enumerate(times)]
    agree(log(*lines, header=f"Time,{name},Power (W),Count"))
    del lines[20]
    swapped = [f"{','.join((cells[1], cells[0], *cells[2:]))}" for cells in (line.split(",") for line in lines)]
    agree(log(*swapped, header=f"{name},Time,Power (W),Count"))


def test_a_column_of_many_numbers_tells_no_rows_apart():
    times = stamps("%H:%M:%S.%f", 700)
    found = agree(log(*(f"{time},{n},{n}.5\n" for n, time in enumerate(times)), header="Time,id,Power (W)"))
    assert found[1] == [700, 1, 0]


@pytest.mark.parametrize("asked", [["#2=power:mW", "#1=time"], ["#2=power:W", "#1=time", "#4=gpu"], ["Note=skip"]])
def test_columns_that_the_user_names(asked):
    columns = read_columns(asked)
    header = HEADER if "Note=skip" in asked else "begin"
    data = log(*rows(stamps("%Y-%m-%d %H:%M:%S.%f", 60)), header=header)
    found = agree(data, read=lambda stream: generic_timeseries.read(stream, columns))
    assert found[1] == [60, 1, 0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings(encoding):
    text = log(*rows(stamps("%Y-%m-%d %H:%M:%S", 60)), header=HEADER.replace("degC", "\u00b0C")).decode()
    found = agree(text.encode(encoding))
    assert found[1] == [60, 1, 0]


def test_numbers_are_those_of_python():
    cells = ["0.1", "5.", ".5", "1e-5", "2.5E+3", "1e-400", "123456789.123456789", "0.30000000000000004", "-0", "1e22"]
    read = parse("".join(f"{n},{cell},1\n" for n, cell in enumerate(cells)).encode(), COUNTS)
    assert np.array_equal(read.numbers[0], np.array([float(cell) for cell in cells]))


@given(
    st.sampled_from(["%Y-%m-%d %H:%M:%S.%f", "%m/%d/%Y %I:%M:%S %p", "%H:%M:%S", "%s"]),
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(0, 3000), st.sampled_from("0159.,-+eEnT:/\t\n\r X;\"'#")), max_size=4),
    st.integers(0, 3000),
    st.integers(60, 900),
)
def test_damaged_logs_give_the_same_both_ways(form, count, damage, end, block):
    text = list(log(*rows(stamps(form, count))).decode())
    for place, sign in damage:
        text[place % len(text)] = sign
    agree("".join(text)[: max(end, 60)].encode(), block=block)


LINES = st.one_of(
    st.integers(0, 59).map(lambda n: rows(stamps("%Y-%m-%d %H:%M:%S", 60))[n]),
    st.integers(0, 59).map(lambda n: rows(stamps("%Y-%m-%d %H:%M:%S", 60))[n].replace(",ok", ",")),
    st.sampled_from(ODD[:-3]),
)


@given(st.lists(LINES, max_size=40))
def test_any_lines_give_the_same_both_ways(lines):
    agree(log(*rows(stamps("%Y-%m-%d %H:%M:%S", 2)), *lines))


SPARE = st.sampled_from(["", ",", ",,"])
READINGS = st.sampled_from(["7,1,234", "7,12,5", "7,12.5,41.5", "7,1234,5", "7,1234,", "7,1.5,2.5,x"])


@given(SPARE, SPARE, st.lists(st.tuples(READINGS, SPARE), max_size=12))
def test_spare_cells_give_the_same_both_ways(of_header, of_rows, odd):
    header = "Time (s),Power (W),Board (degC)" + of_header
    plain = [f"{n},{n}.5,{40 + n}.25{of_rows}\n" for n in range(20)]
    lines = [f"{row}{spare}\n" for row, spare in odd]
    agree(log(*plain[:10], *lines, *plain[10:], header=header))
    agree(log(*lines, *plain, header=header))


@pytest.mark.parametrize("spare", ["", ",", ",,"])
def test_rows_with_spare_cells_are_taken_at_once(spare, monkeypatch):
    parts = parts_taken(monkeypatch, table_lines)
    lines = [f"{n},{n}.5,{40 + n}.25{spare}\n" for n in range(600)]
    list(generic_timeseries.read(io.BytesIO(log(*lines, header="Time (s),Power (W),Board (degC)"))))
    assert sum(part.rows for part in parts if part) > 200
