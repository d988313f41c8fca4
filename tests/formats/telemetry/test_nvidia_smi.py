"""What the first row of a log of nvidia-smi says of the board beside its readings."""

import pytest

from profsvc.errors import BrokenInputError
from tests.formats.both_ways import READERS

HEAD = "timestamp, driver_version, ecc.mode.current, mig.mode.current, power.draw [W]\n"
ROW = "2026/03/01 02:00:0{}.000, {}, 120.50 W\n"


@pytest.mark.parametrize(
    ("before", "cells", "said"),
    [
        ("", "570.86.15, Enabled, Disabled", {"driver_version": "570.86.15", "ecc": "Enabled", "mig": "Disabled"}),
        ("nvidia-smi --query-gpu=timestamp\n", "580.1, [N/A], [Not Supported]", {"driver_version": "580.1"}),
        ("", " , , ", {}),
    ],
)
def test_the_driver_and_the_modes_of_the_board_are_facts_of_the_file(before, cells, said, read_all):
    content = read_all((before + HEAD + "".join(ROW.format(n, cells) for n in range(3))).encode())
    assert content.reader == "nvidia-smi"
    assert {name: content.facts[name] for name in ("driver_version", "ecc", "mig") if name in content.facts} == said
    assert content.samples["value"].tolist().count(120.5) == 3


@pytest.mark.parametrize("rows", [3, 3000], ids=["rows", "blocks"])
@pytest.mark.parametrize("name", ["uuid", "pci.bus_id"])
def test_boards_or_instances_that_share_an_index_are_not_one_sensor(name, rows, read_all):
    header, boards = "timestamp, index, {}, power.draw [W]\n", ("MIG-00aa", "MIG-00bb")
    line = "2026/03/01 02:{:02}:{:02}.000, 0, {}, {}.50 W\n"
    log = "".join(line.format(n // 60, n % 60, board, 100 + n % 7) for n in range(rows) for board in boards)
    found = f"line 3: GPU 0 has the {name} MIG-00bb, but MIG-00aa above; .*; record without index, or one file for each"
    with pytest.raises(BrokenInputError, match=found):
        read_all((header.format(name) + log).encode())
    # A cell without a board, as while it is lost, is no other one; without an index each board is a sensor.
    content = read_all((header.format(name) + log.replace("MIG-00bb", "[Unknown Error]")).encode())
    assert set(content.samples["sensor_index"]) == {0}
    alone = read_all((header.format(name) + log).replace(" index,", "").replace(", 0,", ",").encode())
    assert alone.samples.groupby("sensor_index").size().tolist() == [rows, rows]


def test_a_row_of_another_clock_than_those_that_wait_is_rejected():
    stamped = "2025-11-02T17:03:21,123456789+01:00,38, {}.94\n"
    header = "timestamp,memory.used [MiB],power.draw [W]\n"
    data = header + stamped.format(44) + "2025-11-02T17:03:22, 39, 45.94\n" + "\n" + stamped.format(46)
    found, account, facts, _ = READERS["nvidia_smi"].agree(data.encode(), block=2)
    assert account == [2, 2, 1]
    assert facts["clock"] == "UTC"
    assert [row["time_ns"] for row in found["samples"][:2]] == [1762099401123456789] * 2
    assert found["rejects"][0]["reason"].startswith("timestamp is '2025-11-02T17:03:22', not a time, or one of another")


def test_a_refusal_names_the_first_row_that_is_rejected():
    data = b"timestamp, index, power.draw [W]\n2026/13/20 13:16:16.215, 0, 50.00 W\n2026/03/01 02:00:00.000, 0\n"
    assert "line 2: timestamp is '2026/13/20" in READERS["nvidia_smi"].agree(data)


@pytest.mark.parametrize("rows", [2, 3000])
def test_a_version_is_a_text(rows, read_all):
    line = "2026/03/01 02:{:02}:{:02}.000, 9.0, {}.50 W\n"
    log = "".join(line.format(n // 60, n % 60, 100 + n % 7) for n in range(rows))
    content = read_all(("timestamp, compute_cap, power.draw [W]\n" + log).encode())
    assert content.metrics[["metric", "raw_text", "reason"]].values.tolist() == [["compute_cap", "9.0", "text"]]
    assert content.stored == rows


def test_rows_that_lack_a_cell_are_not_filled_by_the_comma_of_their_time():
    header = "timestamp,utilization.gpu,memory.used,power.draw\n"
    rows = "".join(f"2025-11-02T17:03:{n % 60:02},123456789+01:00,38, {n}\n" for n in range(3000))
    assert "line 2: it has 3 cells but needs 4" in READERS["nvidia_smi"].agree((header + rows).encode())


def test_a_last_row_that_is_cut_is_rejected_where_commas_end_the_lines():
    row = "2026/03/01 02:00:0{}.000, {}.50 W,\n"
    data = "timestamp, power.draw [W],\n" + row.format(1, 100) + row.format(2, 101)
    found, account, *_ = READERS["nvidia_smi"].agree((data + "2026/03/01 02:00:03.000, 10,").encode(), block=1)
    assert account == [2, 1, 1]
    assert found["rejects"][0]["line"] == 4
