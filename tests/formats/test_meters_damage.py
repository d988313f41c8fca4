"""Logs of meters that were cut, changed or are no logs: an `InputError`, or every whole row right and the loss told."""

import io
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profsvc import formats
from profsvc.errors import InputError

FIXTURES = Path(__file__).parents[2] / "fixtures"
CUTS = {
    "yokogawa/scpi_logger.csv": 3,
    "yokogawa/viewer.csv": 3,
    "hioki/pw3335.csv": 3,
    "picolog/elapsed.csv": 2,
    "picolog/zoned_german.csv": 2,
    "joulescope/statistics.csv": 1,
    "ptdaemon/messages.txt": 3,
    "wattsup/records.raw": 3,
    "wattsup/log.txt": 1,
    "lvm/one_x.lvm": 5,
    "lvm/two_segments.lvm": 7,
    "lvm/multi_x.lvm": 5,
    "timeseries/units_row.csv": 2,
    "timeseries/us_dates.csv": 2,
    "timeseries/utf16.csv": 3,
    "monsoon/pymonsoon.csv": 1,
    "otii/recording.csv": 2,
    "extech/raw.txt": 2,
    "extech/dated.txt": 2,
    "extech/display.txt": 1,
    "tweet_a_watt/two_meters.csv": 1,
}
NAMES = sorted({name.split("/")[0].replace("_", "-") for name in CUTS})
PIECES = [line for name in CUTS if "utf16" not in name for line in (FIXTURES / name).read_bytes().split(b"\n")[:30]]
PIECES += [
    b'"',
    b";",
    b"\t",
    b"1e99",
    b"99999:59:59",
    b"9999/12/31 23:59",
    b"\xff\xfe",
    b"-0",
    b"9" * 30,
    b"01/02/0003",
]


def attempt(data, reader=None):
    try:
        _, batches = formats.read(io.BytesIO(data), reader)
        return list(batches)
    except InputError:
        return []


def lines_of(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and data not in (b"", b"\xef\xbb\xbf"))


def rows_of(content, upto=1 << 40) -> set:
    named = content.samples.merge(content.sensors[["sensor_index", "name"]], on="sensor_index")
    return {
        (line, name, str(v)) for line, name, v in named[["line", "name", "value"]].to_numpy().tolist() if line <= upto
    }


@pytest.mark.parametrize(("name", "step"), CUTS.items())
def test_cut_at_every_byte(name, step, read_all, count_lines):
    data = (FIXTURES / name).read_bytes()
    whole = rows_of(read_all(data))
    reader = name.split("/")[0].replace("_", "-")
    read = 0
    for size in range(0, len(data), step):
        head = data[:size]
        try:
            content = read_all(head, reader)
        except InputError:
            continue
        read += 1
        lines = count_lines(head) if size > 3 else content.stored + content.skipped + content.rejected
        assert content.stored + content.skipped + content.rejected == lines, size
        seen = rows_of(content)
        assert seen <= whole, (size, seen - whole)
        if content.stored:
            ended = head.decode("utf-16" if "utf16" in name else "latin-1", errors="replace").count("\n")
            lost = {row for row in whole - seen if row[0] <= ended}
            # Until a column has held a number it may be one of words.
            assert {row[1] for row in lost} <= {row[1] for row in whole} - {row[1] for row in seen}, size
    assert read > len(data) // (4 * step)


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=400), reader=st.sampled_from([None, *NAMES]))
def test_any_bytes(data, reader):
    attempt(data, reader)


@settings(max_examples=500, deadline=None)
@given(
    parts=st.lists(st.sampled_from(PIECES) | st.binary(max_size=6), max_size=12),
    glue=st.sampled_from([b"\n", b"", b"\r\n", b","]),
    reader=st.sampled_from(NAMES),
)
def test_shuffled_pieces_of_logs(parts, glue, reader):
    data = glue.join(parts)
    batches = attempt(data, reader)
    if batches and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"\x28\xb5")) and b"\0" not in data:
        assert sum(b.lines_stored + b.lines_skipped + b.lines_rejected for b in batches) == lines_of(data)


@pytest.mark.parametrize("name", CUTS)
def test_damaged_fixtures(name):
    """Single bytes of a whole file replaced: nothing but an InputError may come."""
    data = (FIXTURES / name).read_bytes()
    for place in range(0, len(data), 17):
        for byte in (b'"', b"\n", b",", b"\xff", b"9"):
            attempt(data[:place] + byte + data[place + 1 :], name.split("/")[0].replace("_", "-"))


LOCALES = {"C": ("", "."), "en": (",", "."), "de": (".", ","), "fr": ("\u202f", ","), "ch": ("\u2019", ".")}
# Plain rows: the numbers as Python prints them, in watts and degrees.
ROWS = [(1234.5, 21.25), (987.25, -0.5), (1000000.0, 1021.125), (0.125, 22.0)]


def printed(value: float, thousands: str, decimal: str) -> str:
    whole, _, fraction = f"{value:,}".partition(".")
    return whole.replace(",", thousands) + decimal + fraction


@pytest.mark.parametrize("language", LOCALES)
@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ROWS[2:3], [(1234.0, 1.125)], [(0.125, 2.5)], [(12.345, 1.234)]])
def test_locales_give_the_same_values_or_a_refusal(language, sign, rows, read_all):
    def quoted(cell: str) -> str:
        return f'"{cell}"' if sign in cell else cell

    cells = [[quoted(printed(value, *LOCALES[language])) for value in row] for row in rows]
    tables = {
        "timeseries": sign.join(["Time", "Power (W)", "Temp (\u00b0C)"]),
        "picolog": sign.join(['""', "Power (W)", "Temp (\u00b0C)"]),
    }
    for reader, header in tables.items():
        lines = [sign.join([f"00:00:0{n}", *row]) for n, row in enumerate(cells)]
        data = "\n".join([header, *lines, ""]).encode()
        refusal = ""
        try:
            content = read_all(data)
        except InputError as error:
            refusal = str(error)
        if refusal:
            assert re.search("do not tell|contradict", refusal)
            continue
        assert content.reader == reader
        for sensor in (0, 1):
            seen = content.samples.loc[content.samples["sensor_index"] == sensor, "value"].tolist()
            assert seen == [row[sensor] for row in rows], (language, sign)


@pytest.mark.parametrize("reader", NAMES)
def test_contract(reader):
    module = formats.by_name(reader)
    assert "Example:" in module.PAGE
    assert max(map(len, module.PAGE.splitlines())) <= 120
    assert not module.sniff(b"")
    assert not module.sniff(b"timestamp, power.draw [W]\n")


def test_many_rows_come_in_batches():
    rows = b"".join(b"%d.5,1.5,2.5\n" % n for n in range(50_000))
    _, batches = formats.read(io.BytesIO(b"Time (s),Power (W),Temp (C)\n" + rows))
    sizes = [len(batch.tables.get("samples", ())) for batch in batches]
    assert sum(sizes) == 100_000
    assert len([size for size in sizes if size]) == 2


@pytest.mark.parametrize("text", ["20/12/23", "01-02-03"])
def test_two_digit_years_are_not_guessed(text):
    data = f"Timestamp,Power (W)\n{text} 10:00,1.5\n".encode()
    with pytest.raises(InputError, match="do not tell the day from the month"):
        list(formats.read(io.BytesIO(data))[1])
