"""Registers and shared memory that a launch can have: where the next block is lost, on devices of known limits."""

import numpy as np
import pytest

from profsvc import specs
from profsvc.analysis.models.resources import fitting_blocks, limiter_names, resource_margins

GTX = specs.figures("GeForce 8800 GTX", "1.0")
H200 = specs.figures("NVIDIA H200", "9.0")


def margins(figures, threads, registers, shared):
    now = {"threads_per_block": threads, "registers_per_thread": registers, "shared_bytes_per_block": shared}
    rows = resource_margins({name: np.array([float(value)]) for name, value in now.items()}, figures)
    return {row["resource"]: row for row in rows}


def test_the_eleventh_register_costs_a_block():
    """Matrix multiplication of Ryoo2008, section 4.2, which prints 8488 registers for 8448."""
    own = margins(GTX, 256, 10, 2048)["registers"]
    assert (own["blocks"], own["most"], own["blocks_beyond"], own["for_more"]) == (3, 10, 2, None)
    own = margins(GTX, 256, 11, 2048)["registers"]
    assert (own["blocks"], own["for_more"], own["blocks_more"]) == (2, 10, 3)
    assert (own["next_demand"], own["capacity"], own["next_fits"]) == (8448, 8192, False)


def test_a_byte_more_than_a_step_of_allocation_costs_a_block():
    own = margins(H200, 256, 32, 28160)["shared"]
    assert (own["blocks"], own["most"], own["blocks_beyond"]) == (8, 28160, 7)
    found = fitting_blocks(H200, 256, 32, np.array([28160, 28161]))
    assert found.blocks.tolist() == [8, 7]
    assert limiter_names(found)[1] == "shared"


@pytest.mark.parametrize("unknown", ["threads", "registers", "shared"])
def test_without_a_count_or_a_device_nothing_is_said(unknown):
    known = {"threads": 256, "registers": 32, "shared": 0}
    assert margins(H200, *(known | {unknown: np.nan}).values()) == {}
    assert margins({}, *known.values()) == {}
