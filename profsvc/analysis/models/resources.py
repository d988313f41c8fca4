"""What an SM has room for: the blocks of a launch with other registers or shared memory, and how far each limit is."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from profsvc.analysis.models.answer import Array
from profsvc.analysis.models.inputs import Values, occupancy_limits
from profsvc.formulas.performance.occupancy import RESOURCES, Limits, Occupancy, occupancy, resource_demand

MAX_REGISTERS = 255
"""Registers that an instruction can address."""


def whole_sm(figures: Mapping[str, object]) -> Limits | None:
    """Return the limits of an SM whose shared memory is set aside for blocks as far as possible; None if unknown."""
    return occupancy_limits(figures, {"shared_mem_config_bytes": figures.get("shared_mem_per_sm_bytes")})


def fitting_blocks(figures: Mapping[str, object], threads: Any, registers: Any, shared: Any) -> Occupancy | None:
    """Return the blocks that fit on an SM of a device, the occupancy and its limiter; None for an unknown device."""
    limits = whole_sm(figures)
    return None if limits is None else occupancy(threads, registers, shared, limits)


def limiter_names(found: Occupancy) -> list[str | None]:
    """Return the resource that limits each; None where nothing is known."""
    return [RESOURCES[place] if place >= 0 else None for place in np.atleast_1d(found.limiter)]


def resource_margins(now: Values, figures: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return how much of each resource a launch can take more, and how much less it needs for another block.

    ``most`` is the largest amount with the blocks that fit now, ``blocks_beyond`` what fits with one more; ``for_more``
    is the largest amount with which ``blocks_more`` fit, None where something else limits. ``next_demand`` is what
    another block would need of the ``capacity`` of the SM.
    """
    limits = whole_sm(figures)
    T, r, s = (float(now[name][0]) for name in ("threads_per_block", "registers_per_thread", "shared_bytes_per_block"))
    if limits is None or np.isnan([T, r, s]).any():
        return []
    largest = int(_number(figures.get("shared_mem_per_block_max_bytes")) or limits.shared_mem_per_sm_bytes)
    sweeps: dict[str, tuple[float, Array, Any, float, float]] = {
        "registers": (r, np.arange(1.0, MAX_REGISTERS + 1), limits.registers_per_sm, T, r),
        "shared": (s, np.arange(0.0, largest + 1), limits.shared_mem_per_sm_bytes, 1.0, s),
    }
    rows = []
    for name, (own, amounts, capacity, threads, each) in sweeps.items():
        registers, shared = (amounts, s) if name == "registers" else (r, amounts)
        blocks = occupancy(T, registers, shared, limits).blocks
        (here,) = np.atleast_1d(occupancy(T, r, s, limits).blocks)
        same, more = amounts[blocks >= here], amounts[blocks > here]
        beyond = blocks[amounts > same.max(initial=-1.0)]
        need = resource_demand(here + 1, threads, each, capacity)
        rows.append(
            {"resource": name, "now": own, "blocks": here, "most": _largest(same),
             "blocks_beyond": float(beyond[0]) if len(beyond) else None, "for_more": _largest(more),
             "blocks_more": float(blocks[amounts == more.max()][0]) if len(more) else None,
             "next_demand": float(need.amount), "capacity": float(capacity), "next_fits": bool(need.fits)}
        )  # fmt: skip
    return rows


def _largest(amounts: Array) -> float | None:
    return float(amounts.max()) if len(amounts) else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
