"""Logs of meters whose numbers or dates cannot be decided, and what every reader of meters promises."""

import io
import re

import pytest

from profsvc import formats
from profsvc.errors import InputError

NAMES = [reader.NAME for reader in formats.METERS]
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
    assert not module.sniff(b"")
    assert not module.sniff(b"timestamp, power.draw [W]\n")


def test_many_rows_come_in_batches():
    rows = b"".join(b"%d.5,1.5,2.5\n" % n for n in range(200_000))
    _, batches = formats.read(io.BytesIO(b"Time (s),Power (W),Temp (C)\n" + rows))
    sizes = [len(batch.tables.get("samples", ())) for batch in batches]
    assert sum(sizes) == 400_000
    assert max(sizes) < 300_000


@pytest.mark.parametrize("text", ["20/12/23", "01-02-03"])
def test_two_digit_years_are_not_guessed(text):
    data = f"Timestamp,Power (W)\n{text} 10:00,1.5\n".encode()
    with pytest.raises(InputError, match="do not tell the day from the month"):
        list(formats.read(io.BytesIO(data))[1])
