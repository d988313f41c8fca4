"""Figures of [FineGrained2016]."""

from collections.abc import Callable
from typing import Any

from profsvc.formulas.criteria import device_sync, granularity, host_sync, load_balance_sm, throughput_occupancy
from profsvc.formulas.performance.speedup import amdahl, potential_speedup, remaining_potential


def ratio(a: float, b: float) -> Any:
    return remaining_potential(a, b)


ANSWERS: dict[str, Callable[..., Any]] = {
    "s002_red_remaining": remaining_potential,
    "s002_red_final": remaining_potential,
    "s002_red_v2_to_v3": ratio,
    "s002_bfs_remaining": remaining_potential,
    "s002_bfs_v2_to_v3": ratio,
    "s002_transpose": ratio,
    "s002_red_fraction": ratio,
    "s002_adds": lambda N: 8191 * N,  # length of a microbenchmark; no formula of ours uses it
    "s002_memthr_from_potential": lambda sp: 1 / potential_speedup(1 / sp, 0.0, "memory", form="as_published").speedup,
    "s002_publ_speedup_below_1": lambda c, p: granularity(c, 1, 1, p, "as_published").speedup,
    "s002_cons_speedup": amdahl,
    "s002_devicesync_publ": lambda inactive, stall: device_sync(stall, 1 - inactive, 1, 1, "as_published").speedup,
    "s002_devicesync_cons": lambda inactive, stall: device_sync(stall, 1 - inactive, 1, 1).speedup,
    "s002_throcc_publ": lambda occ, memthr: throughput_occupancy(occ, memthr, form="as_published").value,
    "s002_throcc_cons": lambda occ, memthr: throughput_occupancy(occ, memthr).value,
    "s002_lbsm": lambda cycles: load_balance_sm(cycles).value,
    "s002_l1_publ": lambda trans, requested: granularity(trans, requested, 128, form="as_published").value,
    "s002_l1_cons": lambda trans, requested: granularity(trans, requested, 128).value,
    "s002_hostsync_overlap_publ": lambda start, exe: host_sync(start, exe, form="as_published").value,
    "s002_hostsync_overlap_cons": lambda start, exe: host_sync(start, exe).value,
}
