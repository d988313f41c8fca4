"""Every log of sensors under fixtures against the truth beside it: add a file, get a test."""

import json
import math
from pathlib import Path

import pytest

from profsvc import formats
from profsvc.errors import InputError
from profsvc.formats.telemetry import (
    afterburner,
    codecarbon,
    dcgm,
    nvidia_smi,
    nvidia_smi_dmon,
    nvidia_smi_q,
    nvml_energy,
    rocm_smi,
    tegrastats,
    zeus,
)
from profsvc.formats.timeseries import sensor_log

MODULES = [
    nvidia_smi,
    nvidia_smi_dmon,
    nvidia_smi_q,
    dcgm,
    tegrastats,
    zeus,
    nvml_energy,
    rocm_smi,
    afterburner,
    codecarbon,
]
FIXTURES = Path(__file__).parents[3] / "fixtures"
FOLDERS = {module.NAME.replace("-", "_") for module in MODULES}
ALL = sorted(p for p in FIXTURES.glob("*/*") if p.is_file() and not p.name.endswith((".expected.json", ".error.txt")))
ALL = [path for path in ALL if path.parent.name != "fuzz"]
FILES = [path for path in ALL if path.parent.name in FOLDERS]


def beside(path: Path, suffix: str) -> Path:
    return path.parent / (path.name.split(".")[0] + suffix)


GOOD = [path for path in FILES if beside(path, ".expected.json").exists()]
BAD = [path for path in FILES if beside(path, ".error.txt").exists()]


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    rest = [module for module in MODULES if module not in formats.READERS]
    monkeypatch.setattr(formats, "READERS", [*formats.READERS, *rest])


def plain(value):
    return None if value is None or value != value else value


def rows_of(table):
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{key: plain(value) for key, value in row.items()} for row in records]


def same(seen, expected) -> bool:
    if expected is None or seen is None or isinstance(expected, str):
        return seen == expected
    return math.isclose(seen, expected, rel_tol=1e-15) if isinstance(expected, float) else seen == expected


def sensor_of(content, wanted):
    found = [
        row
        for row in rows_of(content.sensors)
        if (row["name"], row["quantity"]) == (wanted["name"], wanted["quantity"])
        and row["gpu_index"] == wanted["gpu_index"]
        and wanted.get("device") in (None, row["device"])
    ]
    assert len(found) == 1, (wanted, found)
    samples = content.samples[content.samples["sensor_index"] == found[0]["sensor_index"]]
    return found[0], rows_of(samples)


def test_every_file_has_a_truth():
    assert set(FILES) == set(GOOD) | set(BAD)
    assert not set(GOOD) & set(BAD)
    assert len(FILES) >= 35
    assert {path.parent.name for path in FILES} == FOLDERS


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_good_file(path, read_all, count_lines):
    truth = json.loads(beside(path, ".expected.json").read_text(encoding="utf-8"))
    content = read_all(path)
    assert content.reader == truth["format"]
    assert (content.stored, content.skipped, content.rejected) == (truth["stored"], truth["skipped"], truth["rejected"])
    assert content.stored + content.skipped + content.rejected == count_lines(path)
    assert content.facts.items() >= truth["facts"].items(), content.facts
    assert content.message == truth["message"]
    assert [[row["line"], row["reason"]] for row in rows_of(content.rejects)] == truth.get("rejects", [])
    for wanted in truth["sensors"]:
        check_sensor(content, wanted, truth)
    metrics = rows_of(content.metrics)
    assert len(metrics) == truth.get("metric_rows", len(metrics))
    for wanted in truth.get("metrics", []):
        assert any(all(same(row[k], v) for k, v in wanted.items()) for row in metrics), wanted
    assert [{k: row[k] for k in ("name", "start_ns", "duration_ns", "line")} for row in rows_of(content.ranges)] == (
        truth.get("ranges", [])
    )


def check_sensor(content, wanted, truth):
    sensor, samples = sensor_of(content, wanted)
    assert (sensor["quantity"], sensor["unit"]) == (wanted["quantity"], wanted["unit"]), sensor
    values = [row["value"] for row in samples]
    assert len(values) == len(wanted["values"])
    assert all(map(same, values, map(plain, wanted["values"]))), (sensor["name"], values)
    assert [row["sample_index"] for row in samples] == list(range(len(samples)))
    assert [row["reason"] for row in samples] == wanted.get("reasons", [None] * len(samples))
    assert wanted.get("quality", sensor["quality"]) == sensor["quality"]
    for name in ("local_ns", "time_ns", "elapsed_ns"):
        if name in truth and sensor is not None and wanted is truth["sensors"][0]:
            assert [row[name] for row in samples][: len(truth[name])] == truth[name]
    has_time, kind = [row["elapsed_ns"] is not None for row in samples], truth.get("time")
    assert all(has_time) if kind != "none" else not any(has_time)
    if kind is not None:
        assert all(row["time_ns"] is row["local_ns"] is None for row in samples)
    else:
        assert all((row["time_ns"] is None) != (row["local_ns"] is None) for row in samples)


def by_name(content):
    """Return all samples and the qualities without the numbers of the sensors, which follow the order of the chunks."""
    keys = ["name", "gpu_index", "device", "quality"]
    table = content.samples.merge(content.sensors[["sensor_index", *keys]], on="sensor_index")
    return sorted(map(str, table.drop(columns="sensor_index").itertuples(index=False)))


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_chunks_do_not_matter(path, read_all, monkeypatch):
    whole = read_all(path)
    for rows in (1, 2, 5):
        monkeypatch.setattr(sensor_log, "CHUNK_ROWS", rows)
        parts = read_all(path)
        assert by_name(parts) == by_name(whole), rows
        assert parts.facts == whole.facts
        assert (parts.stored, parts.skipped, parts.rejected) == (whole.stored, whole.skipped, whole.rejected)


def test_a_burst_without_end_does_not_gather(read_all, monkeypatch):
    head = "timestamp, power.draw [W]\n"
    bursts = [f"2026/11/20 13:00:{second:02d}.{ms:03d}, 70.00 W\n" for second in range(50) for ms in (0, 2)]
    burst = ["2026/11/20 13:01:00.000, 70.00 W\n"] * 501
    content = read_all((head + "".join(bursts + burst)).encode())
    assert (content.stored, content.rejected) == (100, 501)
    monkeypatch.setattr(sensor_log, "CHUNK_ROWS", 70)
    content = read_all((head + "".join(bursts + burst)).encode())
    assert (content.stored, content.rejected) == (100, 501)


@pytest.mark.parametrize("path", BAD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_bad_file(path, read_all):
    message = beside(path, ".error.txt").read_text(encoding="utf-8").rstrip("\n")
    with pytest.raises(InputError) as caught:
        read_all(path)
    assert str(caught.value) == message


# Logs that lie beside what was profiled with them.
ELSEWHERE = {"held_out/power_smi.csv.gz": "nvidia_smi"}


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_sniff_takes_the_files_of_another_reader(path):
    try:
        head = formats.open_stream(path).read(formats.HEAD_BYTES)
    except InputError:
        return
    found = [module.NAME.replace("-", "_") for module in MODULES if module.sniff(head)]
    of = ELSEWHERE.get(f"{path.parent.name}/{path.name}", path.parent.name)
    assert found == ([of] if of in FOLDERS else [])
    if of in FOLDERS:
        assert [reader for reader in formats.READERS if reader.sniff(head)][1:] == []
