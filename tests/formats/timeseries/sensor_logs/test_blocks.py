"""Blocks of a log of nvidia-smi read at once give what the same lines give one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formats.telemetry import nvidia_smi
from profsvc.formats.timeseries.sensor_logs.blocks import parse
from tests.formats.both_ways import READERS, with_another_cell
from tests.inputs.long_exports import smi_log

agree = READERS["nvidia_smi"].agree

HEADER = "timestamp, index, name, power.draw [W], temperature.gpu, pstate, clocks.sm [MHz]"
ROW = "2026/11/20 13:16:{:02}.{:03}, {}, GPU A, {:.2f} W, 45, P0, {} MHz\n"


def rows(count, gpus=1):
    return [
        ROW.format(at // 10, at % 10 * 100, gpu, 60 + at * 1.37, 345 + at) for at in range(count) for gpu in range(gpus)
    ]


def log(*lines, header=HEADER):
    return f"{header}\n{''.join(lines)}".encode()


def test_a_long_log_gives_the_same_both_ways():
    data = "".join(smi_log(300)).encode()
    found = agree(data)
    assert (len(found[0]["samples"]), found[1]) == (1200, [300, 1, 0])


def test_plain_rows_are_read_at_once():
    columns = [nvidia_smi.column_of(name) for name in HEADER.split(", ")]
    part = parse("".join(rows(3)).encode(), columns)
    assert part.rows == 3
    assert np.diff(part.ns).tolist() == [100_000_000] * 2
    assert part.columns[3].numbers.tolist() == [60.0, 61.37, 62.74]
    assert part.columns[6].numbers.tolist() == [345e6, 346e6, 347e6]
    assert ([text.strip() for text in part.columns[5].texts], part.columns[5].numbers) == (["P0"], None)


@pytest.mark.parametrize(
    "odd",
    [
        "\n",
        "no data\n",
        HEADER + "\n",
        "2026/11/20 13:16:07.900, 0, GPU A, [N/A], [N/A], P8, [Not Supported]\n",
        "2026/11/20 13:16:07.900, 0, GPU A, 61.5 W, 45, P0, 345 MHz\n",
        "2026/11/20 13:16:07.900, 0, GPU A, 61.50, 45, P0, 345 MHz\n",
        "2026/11/20 13:16:07.900, 0, GPU A, 61,50 W, 45, P0, 345 MHz\n",
        "2026/11/20 13:16:07.900, 0, GPU A, .50 W, 45, P0, 345 MHz\n",
        "2026/11/20 13:16:07.900, 0, GPU A, 1e3 W, 45, P0, 345 MHz\n",
        "2026/11/20 13:16:07.900, 0, GPU A, 123456789.25 W, 45, P0, 345 MHz\n",
        "2026/11/20 13:16:07.900, 0, GPU B, 61.50 W, 45.5, P0, 345 GHz\n",
        "2026/11/20 13:16:07.900, x, GPU A, 61.50 W, 45, P0, 345 MHz\n",
        "2026/11/20 13:16:07.900, 12, GPU A, 61.50 W, 45, P0, 345 MHz\n",
        "2026/11/20 13:16:67.900, 0, GPU A, 61.50 W, 45, P0, 345 MHz\n",
        "2026/02/30 13:16:07.900, 0, GPU A, 61.50 W, 45, P0, 345 MHz\n",
        "2026/11/20 13:16:07.9, 0, GPU A, 61.50 W, 45, P0, 345 MHz\n",
        "2026-11-20 13:16:07.900, 0, GPU A, 61.50 W, 45, P0, 345 MHz\r\n",
        "2026/11/20 13:16:07.900, 0, \u00c4, 61.50 W, 45, P0, 345 MHz\n",
        rows(6)[-1],
        "2026/11/20 13:16",
        "2026/11/20 13:16:07.900, 0, GPU A, 61.50 W, 45, P0, 345",
        "2026/11/20 13:16:07.900, 0, GPU A, 61.50 W, 45, P0, 345 MHz",
    ],
)
@pytest.mark.parametrize("gpus", [1, 2])
def test_an_odd_line_among_plain_ones(odd, gpus):
    agree(log(*rows(6, gpus), odd, *rows(12, gpus)[6 * gpus :]))
    agree(log(*rows(6, gpus), odd))


def test_rows_that_were_written_twice():
    agree(log(*rows(8), rows(8)[-1], *rows(16)[8:]))
    agree(log(*(row for row in rows(12) for _ in range(2))))


def test_a_gpu_that_is_spelled_twice_is_one():
    spelled = [
        row.replace(f", {gpu}, GPU A", f", {name}, GPU A")
        for row, gpu, name in (
            (row, at % 2, ("0", "1", "GPU 0", "01")[at % 4]) for at, row in enumerate(rows(8, gpus=2))
        )
    ]
    found = agree(log(*spelled))
    assert {row["gpu_index"] for row in found[0]["sensors"]} == {0, 1}
    counts = [row["sample_index"] for row in found[0]["samples"] if row["sensor_index"] == "power.draw of 1"]
    assert counts == list(range(8))


CELLS = st.sampled_from(
    [" 45", " 45 W", " 0", " 1", " [N/A]", " 1.5 W", " 1.50 W", "5", " P2", "", " 12345678901 W", " x"]
)
LINES = st.one_of(
    st.integers(0, 9).map(lambda at: rows(10)[at]),
    with_another_cell(rows(10), CELLS, 6),
    st.text("2/: ,.W0\u00e9", max_size=20).map(lambda text: text + "\n"),
)


@given(st.lists(LINES, max_size=25))
def test_any_lines_give_the_same_both_ways(lines):
    agree(log(*rows(2), *lines))


@given(st.lists(st.sampled_from([",", ", ", ",5", "", ",,"]), max_size=12))
def test_a_column_without_a_name_gives_the_same_both_ways(ends):
    plain = [row.replace("\n", ",\n") for row in rows(4 + len(ends))]
    odd = [row.replace(",\n", f"{end}\n") for row, end in zip(plain[4:], ends, strict=True)]
    agree(log(*plain[:4], *odd, header=HEADER + ","))
