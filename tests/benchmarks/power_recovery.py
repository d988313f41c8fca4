"""How well the thermal formulas find what is known: logs made from a truth, seen through every defect at once.

Run it with ``python -m tests.benchmarks.power_recovery [logs]``.
"""

import numpy as np

from profsvc.formulas.coefficient import Coefficient, fit_coefficient
from tests.formulas.synthetic_logs import Log


def joined(log: Log, shift_s: float) -> np.ndarray:
    """Temperature at the stamps of the power; nothing across a gap of more than 3 s."""
    stamps = log.temperature_time_s - shift_s
    after = np.searchsorted(stamps, log.power_time_s).clip(1, stamps.size - 1)
    inside = (stamps[after] - stamps[after - 1] <= 3) & (log.power_time_s <= stamps[-1] + 2)
    return np.where(inside, np.interp(log.power_time_s, stamps, log.temperature_c), np.nan)


def coefficient(log: Log, shift_s: float, error_s: float) -> Coefficient:
    return fit_coefficient(
        log.power_time_s, log.power_w, joined(log, shift_s), log.segments(), load=log.load[log.segments()],
        clock=log.clock_mhz, throttled=log.throttled, fan_w=log.fan_w, fan="removed", offset_error_s=error_s,
    )  # fmt: skip
