"""A measured characterization of a device as the analysis uses it: what its units sustain, its curves, its costs.

F_DRAMThr, F_L2Thr, F_L1Thr and F_ArithThr count with their saturated value: at the intensity of a kernel that starves
its unit they would call the starvation attainable. F_SHMEM and F_Divergence describe the code and not how well it
runs, so they are evaluated at the kernel's own conflict degree and share of control statements; where that is unknown,
they too count with their saturated value.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from profsvc import specs
from profsvc.errors import NotFoundError
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.performance.characterization import Characterization as Knots
from profsvc.formulas.performance.characterization import (
    Evaluated,
    eval_characterization,
    fit_characterization,
    saturated,
)
from profsvc.formulas.performance.operations import OPERATIONS
from profsvc.specs.criteria import single_figures

Array = NDArray[np.float64]
# With fewer points a median of repeats has nothing to smooth, and the best point counts as it is.
MIN_POINTS = 3
MIN_SHARE = 1e-3
MAX_COST = 1e3
SECTOR_BYTES = 32
# How a function runs over its sweep, so that the noise of single points bends no curve.
TRENDS = {
    "F_Divergence": "decreasing",
    **dict.fromkeys(("F_DRAMThr", "F_L2Thr", "F_L1Thr", "F_ArithThr"), "increasing"),
}
# Operation of the time shares -> unit of the joint bound whose function speaks for it where no cost was measured.
UNIT_OF_OPERATION = dict(
    zip(OPERATIONS, ("dram",) * 2 + ("l2",) * 2 + ("l1",) * 4 + ("integer", "fp32", "xu", "fp64"), strict=True)
)


@dataclass(frozen=True)
class Characterization:
    """What was measured of one device; ``sustained`` is the share of its peak of each unit that was measured."""

    samples: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    sustained: Mapping[str, float] = field(default_factory=dict)

    @property
    def measured(self) -> dict[str, float]:
        """The sustained shares by unit, and the medians of single figures by quantity, as models take them."""
        figures = {name: float(np.median(self.samples[name][1])) for name in self.samples if name in single_figures()}
        return {**self.sustained, **figures}

    def at(self, quantity: str, x: ArrayLike) -> Evaluated:
        """Evaluate a function at ``x``, saturated where x is unknown; 1 where the function was not measured."""
        place = np.asarray(x, dtype=np.float64)
        if quantity not in self.samples:
            return Evaluated(np.ones_like(place), np.zeros(place.shape, dtype=np.uint32))
        fit = fit_of(quantity, *self.samples[quantity])
        known = np.isfinite(place) & (place >= 0)
        found = eval_characterization(fit.knots_x, fit.knots_y, np.where(known, place, fit.knots_x[0]))
        y = np.where(known, found.y, saturated(fit.knots_y))
        return Evaluated(y, np.where(known, found.flags, np.uint32(0)) & np.uint32(Flag.EXTRAPOLATED))

    def costs(self, figures: pd.DataFrame) -> dict[str, Array]:
        """Return what each operation costs over its cost at peak rate, at least 1, for a row of figures a launch.

        An operation without a measured cost, or without a known peak rate, costs what the sustained share of its unit
        says, and 1 where that was not measured either.
        """
        peak, costs = peak_costs(figures), {}
        for operation in OPERATIONS:
            cost = np.full(len(figures), 1.0 / self.sustained.get(UNIT_OF_OPERATION[operation], 1.0))
            if f"k_{operation}" in self.samples and operation in peak:
                measured = float(np.median(self.samples[f"k_{operation}"][1])) / peak[operation]
                cost = np.where(np.isfinite(measured), measured, cost)
            costs[operation] = np.clip(cost, 1.0, MAX_COST)
        return costs


def fit_of(quantity: str, x: ArrayLike, y: ArrayLike) -> Knots:
    """Return the knots of a function, monotone where the function is."""
    return fit_characterization(x, y, trend=TRENDS.get(quantity.partition(":")[0], "any"))


def peak_costs(figures: pd.DataFrame) -> dict[str, Array]:
    """Return the cycles of each operation at peak rate, for those whose peak rate figures tell.

    DRAM serves the whole device in sectors; an SM moves a line of L1, or a wavefront of shared memory, a cycle.
    """
    f = {str(name): figures[name].to_numpy(dtype="float64") for name in figures}
    clock = np.where(np.isnan(f["boost_clock_hz"]), f["sm_clock_hz"], f["boost_clock_hz"])
    with np.errstate(all="ignore"):
        sector = SECTOR_BYTES * clock / f["dram_peak_bytes_per_s"]
        lanes = {"single": "fp32_lanes_per_sm", "special": "sfu_per_sm", "double": "fp64_lanes_per_sm"}
        arithmetic = {operation: f["warp_size"] / f[name] for operation, name in lanes.items()}
    one = np.ones(len(figures))
    local = dict.fromkeys(("l1_load", "l1_store", "shared_load", "shared_store"), one)
    return {"dram_load": sector, "dram_store": sector, **local, **arithmetic}


def is_same_device(one: str, other: str) -> bool:
    """Tell whether two names mean one product: of the catalogue if it knows both, else by the letter.

    >>> is_same_device("H200", "NVIDIA H200"), is_same_device("H200", "A100-PCIe-40GB")
    (True, False)
    >>> is_same_device("unlisted board", "unlisted board")
    True
    """
    try:
        return specs.device(one).key == specs.device(other).key
    except NotFoundError:
        return one == other


def device_characterization(
    measured: pd.DataFrame | None, device: str | None, domain: Mapping[str, Any]
) -> Characterization:
    """Return the characterization of a device out of those of all (device, quantity, x, y).

    Where several names of the device have the same quantity, the rows of the name that comes last count.
    """
    if measured is None or measured.empty or device is None:
        return Characterization()
    mine = [name for name in measured["device"].unique() if is_same_device(str(name), device)]
    rows = measured[measured["device"].isin(mine)]
    rows = rows[rows["device"] == rows.groupby("quantity")["device"].transform("last")]
    shares = measured_shares(domain, rows)
    return Characterization(_samples(rows), {unit: shares[unit] for unit in sorted(shares)})


def _samples(rows: pd.DataFrame | None) -> dict[str, tuple[Array, Array]]:
    if rows is None or rows.empty:
        return {}
    return {
        str(quantity): (group["x"].to_numpy(dtype="float64"), group["y"].to_numpy(dtype="float64"))
        for quantity, group in rows.groupby("quantity")
    }


def measured_shares(domain: Mapping[str, Any], measured: pd.DataFrame | None) -> dict[str, float]:
    """Return the share of its peak that each unit sustained in its microbenchmark, for the units that have one.

    ``measured`` has ``quantity, x, y``: the characterization of the device; of each function the saturated value
    counts, so that a starved kernel is not measured by its own starvation.
    """
    samples, shares = _samples(measured), {}
    for unit in domain["unit"]:
        own = f"{unit['function']}:{unit['name']}"
        if quantity := next((name for name in (own, unit["function"]) if name in samples), None):
            shares[unit["name"]] = float(np.clip(_sustained_share(quantity, *samples[quantity]), MIN_SHARE, 1.0))
    return shares


def attainable_shares(domain: Mapping[str, Any], measured: Mapping[str, float]) -> dict[str, float]:
    """Return the share of its peak that a kernel at the limit of each unit is expected to sustain.

    At ``near_peak`` the tool takes a unit for the limit of a kernel: the least. The most is what a microbenchmark
    sustained that does nothing else (``measured``, see `measured_shares`). Without one, issue slots and arithmetic
    pipes, which repeat nothing, may reach their peak, while refresh, turnaround and conflicts keep memories below
    theirs, by what is not known: for these the least counts. Within the limits nothing more is known, and their
    geometric mean has the smallest factor to both.
    """
    least = float(domain["attainable"]["near_peak"])
    most = {unit["name"]: 1.0 if unit["kind"] == "arithmetic" else least for unit in domain["unit"]} | dict(measured)
    return {name: min(share, math.sqrt(least * share)) for name, share in most.items()}


def _sustained_share(quantity: str, x: Array, y: Array) -> float:
    return float(saturated(fit_of(quantity, x, y).knots_y if len(y) >= MIN_POINTS else y))
