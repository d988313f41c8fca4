"""A broken thermocouple is no temperature, whatever its logger makes of it: null with the reason, and told in all."""

import pytest

LVM = (
    "LabVIEW Measurement\nSeparator\tTab\nDecimal_Separator\t.\nX_Columns\tOne\n***End_of_Header***\nChannels\t1\n"
    "Y_Unit_Label\tDeg C\n***End_of_Header***\nX_Value\tDie\tComment\n0.0\t21.5\t\n1.0\t{}\t\n"
)
LOGS = {
    "lvm": LVM,
    "picolog": '"","Die (°C)"\n"00:00:00","21.5"\n"00:00:01","{}"\n',
    "timeseries": "Timestamp,Die (°C)\n2024-06-03 10:00:00,21.5\n2024-06-03 10:00:01,{}\n",
}
CELLS = {
    "2337.5": "open sensor: 2337.5 is beyond any thermocouple",
    "-300.0": "below absolute zero",
    "9.9E37": "beyond the range (9.9E37)",
    "NaN": "nan",
    "-Inf": "inf",
    "": "empty",
    "OPEN": "open sensor: 'OPEN'",
    "Open TC": "open sensor: 'Open TC'",
    "O.L": "beyond the range: 'O.L'",
    "Over Range": "beyond the range: 'Over Range'",
    "----": "not a number: '----'",
}


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("reader", LOGS)
def test_what_is_no_temperature_is_null_with_the_reason(reader, cell, read_all):
    content = read_all(LOGS[reader].format(cell).encode())
    assert content.reader == reader
    assert (content.stored, content.rejected) == (2, 0)
    assert content.samples["value"].tolist()[0] == 21.5
    assert content.samples["value"].isna().tolist() == [False, True]
    assert content.samples["reason"].tolist() == [None, CELLS[cell]]
    assert "1 of 2 readings have no value" in content.sensors["quality"].tolist()[0]


@pytest.mark.parametrize("reader", LOGS)
def test_the_hottest_thermocouple_is_a_temperature(reader, read_all):
    assert read_all(LOGS[reader].format("2320.0").encode()).samples["value"].tolist() == [21.5, 2320.0]
