"""Logs of boards in chunks of any size, and bursts of readings."""

import pytest

from profsvc.formats.timeseries.sensor_logs import log as sensor_log
from tests.formats.fixtures import MONITORS, good, shown


def by_name(content):
    """Return all samples and the qualities without the numbers of the sensors, which follow the order of the chunks."""
    keys = ["name", "gpu_index", "device", "quality"]
    table = content.samples.merge(content.sensors[["sensor_index", *keys]], on="sensor_index")
    return sorted(map(str, table.drop(columns="sensor_index").itertuples(index=False)))


@pytest.mark.parametrize("path", good(*sorted(MONITORS)), ids=shown)
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
