"""Public logs of meters, thermocouples and loggers that nobody here wrote; they stay outside the repository."""

from pathlib import Path

import pandas as pd
import pytest

from profsvc.formats import by_name

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
FOLDERS = ("5_meters", "6_thermo")
KALAPONTSAI = "kalapontsai__Electric-appliance-energy-efficiency-record__"
RAW = "kjordahl__Watts-Up--logger__iphone4.raw"

# file: reader, lines stored, skipped, rejected, and of some sensors: readings with a value, mean, tolerance
ORACLES = {
    "RcSmith23__Watts-Up--logger__Readings_h2.txt": ("wattsup", 27, 0, 0, {"watts": (27, 81.05185)}),
    "anivegesana__WT310__wt310_11V83.csv": ("yokogawa", 32, 1, 0, {"Active Power": (31, 0.141832)}),
    "anivegesana__WT310__wt310_lowercase_header_10s.csv": ("yokogawa", 7, 1, 0, {"power": (6, 0.141841)}),
    "anivegesana__WT310__wt310_offset3W.csv": ("yokogawa", 31, 1, 0, {"Active Power": (31, 3.02166)}),
    f"{KALAPONTSAI}power_hioki_pw3335.csv": ("hioki", 2873, 3, 0, {"P": (2873, 33.12635), "U": (2873, 110.0771)}),
    f"{KALAPONTSAI}sample_v1_temp_and_power.csv": (
        "timeseries",
        601,
        1,
        0,
        {"W": (601, 31.86356), "R1": (601, 5.14759), "F1": (601, -19.37121)},
    ),
    RAW: ("wattsup", 6423, 0, 0, {"watts": (6423, 4.903846)}),
    "mlcommons__power-dev__testing_spl.txt": ("ptdaemon", 133, 0, 0, {"Watts": (133, 38.64436)}),
    "KinXY__VM235_Fridge_Lab__fridge_data.lvm": (
        "lvm",
        930,
        1,
        0,
        {"T1": (279, -1.49207), "T5": (279, 53.58448), "T_Ambient": (279, 24.2568), "Expansion Out": (930, None)},
    ),
    "berlogabob__bioreactor_labview__test_1.lvm": ("lvm", 0, 13, 0, {}),
    "jm1261__ThermocoupleMonitoring__Boiling_Water_250131.csv": ("timeseries", 3040, 1, 16, {"Sensor 1": (3028, None)}),
    "jm1261__ThermocoupleMonitoring__Cups_of_Tea.csv": ("timeseries", 521, 1, 0, {"Sensor 2": (516, 46.14171)}),
    f"{KALAPONTSAI}sample_v2_8ch_temps.csv": ("timeseries", 2872, 1, 0, {"R1": (2872, 5.89533)}),
    "ladisk__lvm_read__long_single_header_multi_ch.lvm": (
        "lvm",
        16384,
        22,
        0,
        dict.fromkeys(("F", "m_1"), (16384, None)),
    ),
    "ladisk__lvm_read__no_decimal_separator.lvm": ("lvm", 4, 23, 0, dict.fromkeys(("ax", "ay", "az"), (4, None))),
    "ladisk__lvm_read__short_new_line_end.lvm": ("lvm", 10, 24, 0, {"Response (Trigger)": (10, None)}),
    "ladisk__lvm_read__with_comments.lvm": ("lvm", 9, 23, 0, {"Temperatura": (9, None), "Volume": (9, None)}),
    "mattleung10__PicoLog_Thermocouple_Converter__sample_June3.csv": (
        "picolog",
        309,
        1,
        0,
        {"Single-ended 12 Ave.": (309, 0.0298417)},
    ),
}
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the public logs are not at {CORPUS}")


def find(name: str) -> Path:
    return next(path for folder in FOLDERS if (path := CORPUS / folder / name).exists())


def values_of(content, name):
    sensor = content.sensors.loc[content.sensors["name"] == name, "sensor_index"]
    assert len(sensor) == 1, content.sensors["name"].tolist()
    return content.samples[content.samples["sensor_index"] == sensor.iloc[0]]


@needs_corpus
@pytest.mark.parametrize("name", ORACLES)
def test_public_log(name, read_all, count_lines):
    reader, stored, skipped, rejected, means = ORACLES[name]
    content = read_all(find(name))
    assert content.reader == reader
    assert (content.stored, content.skipped, content.rejected) == (stored, skipped, rejected)
    assert stored + skipped + rejected == count_lines(find(name))
    for sensor, (count, mean) in means.items():
        values = values_of(content, sensor)["value"]
        assert values.notna().sum() == count
        if mean is not None:
            assert values.mean() == pytest.approx(mean, rel=1e-5)


@needs_corpus
def test_every_public_log_has_an_oracle():
    assert {path.name for folder in FOLDERS for path in (CORPUS / folder).iterdir()} == set(ORACLES)


@needs_corpus
def test_energies_are_joules(read_all):
    final = {
        "anivegesana__WT310__wt310_11V83.csv": ("Accumulated Energy", 0.00118194),
        "anivegesana__WT310__wt310_offset3W.csv": ("Accumulated Energy", 0.0260189),
        f"{KALAPONTSAI}power_hioki_pw3335.csv": ("WP", 1583.16),
    }
    for name, (sensor, watt_hours) in final.items():
        values = values_of(read_all(find(name)), sensor)["value"]
        assert values.iloc[-1] == pytest.approx(watt_hours * 3600, rel=1e-12)
    first = values_of(read_all(find(f"{KALAPONTSAI}power_hioki_pw3335.csv")), "WP")["value"].iloc[0]
    assert first == pytest.approx(0.015 * 3600)


@needs_corpus
def test_clocks(read_all):
    """First and last reading, in seconds since 1970 of the file's own clock, or since its start."""
    local = {
        f"{KALAPONTSAI}power_hioki_pw3335.csv": ("P", "2024-12-17 08:40:37", "2024-12-19 08:32:31"),
        f"{KALAPONTSAI}sample_v1_temp_and_power.csv": ("W", "2024-12-16 19:00:00", "2024-12-17 05:00:00"),
        f"{KALAPONTSAI}sample_v2_8ch_temps.csv": ("R1", "2024-12-17 08:39:00", "2024-12-19 08:30:00"),
        "mlcommons__power-dev__testing_spl.txt": ("Watts", "2020-12-23 10:21:51.496", "2020-12-23 10:24:03.515"),
        "jm1261__ThermocoupleMonitoring__Boiling_Water_250131.csv": (
            "Sensor 1",
            "2025-01-25 18:39:44",
            "2025-01-25 23:01:03",
        ),
        "ladisk__lvm_read__no_decimal_separator.lvm": (
            "ax",
            "2016-12-12 09:54:07.483999",
            "2016-12-12 09:54:07.484749",
        ),
    }
    for name, (sensor, first, last) in local.items():
        rows = values_of(read_all(find(name)), sensor)
        assert rows["time_ns"].isna().all()
        assert [rows["local_ns"].iloc[0], rows["local_ns"].iloc[-1]] == [pd.Timestamp(t).value for t in (first, last)]
    elapsed = {"KinXY__VM235_Fridge_Lab__fridge_data.lvm": ("T1", 176_240_620_000)}
    elapsed["mattleung10__PicoLog_Thermocouple_Converter__sample_June3.csv"] = ("Single-ended 12 Ave.", 308 * 10**9)
    for name, (sensor, last) in elapsed.items():
        rows = values_of(read_all(find(name)), sensor)
        assert rows["local_ns"].isna().all()
        assert rows["elapsed_ns"].iloc[-1] == last


@needs_corpus
def test_details_of_public_logs(read_all):
    raw = read_all(find(RAW))
    assert raw.facts["nul_bytes"] == "473"
    assert values_of(raw, "watts")["value"].max() == pytest.approx(7.2)
    spl = values_of(read_all(find("mlcommons__power-dev__testing_spl.txt")), "Watts")["value"]
    assert (spl.min(), spl.max()) == (23.43, 44.98)
    hioki = values_of(read_all(find(f"{KALAPONTSAI}power_hioki_pw3335.csv")), "P")["value"]
    assert (hioki.min(), hioki.max()) == (pytest.approx(0.3), pytest.approx(188.7))
    boiling = read_all(find("jm1261__ThermocoupleMonitoring__Boiling_Water_250131.csv"))
    assert (boiling.samples["reason"] == "empty").sum() == 25
    comments = read_all(find("ladisk__lvm_read__with_comments.lvm"))
    pressure = comments.samples[comments.samples["sensor_index"] == 0]["value"]
    assert (round(pressure.iloc[0], 4), round(pressure.iloc[-1], 4)) == (1.8338, 1.7172)
    assert comments.sensors["unit"].tolist() == ["MPa", "degC", "ml"]
    assert comments.facts["encoding"] == "latin-1"


@needs_corpus
def test_logs_of_other_tools_are_left_to_their_readers():
    mine = [by_name(name) for name in ("yokogawa", "hioki", "picolog", "joulescope", "ptdaemon", "wattsup", "lvm")]
    mine.append(by_name("timeseries"))
    for path in CORPUS.rglob("*"):
        if path.is_file() and path.parent.name not in FOLDERS and path.suffix not in (".gz", ".sqlite"):
            head = path.read_bytes()[: 256 << 10]
            assert not [reader.NAME for reader in mine if reader.sniff(head)], path.name
