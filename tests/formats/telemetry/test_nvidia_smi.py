"""What the first row of a log of nvidia-smi says of the board beside its readings."""

import pytest

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
