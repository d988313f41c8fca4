"""How well the thermal formulas find what is known: logs made from a truth, seen through every defect at once.

Run it with ``python -m tests.benchmarks.power_recovery [logs]``. Printed are, over 1000 logs of boards drawn at random
(`tests.formulas.thermal.synthetic_logs`): in how many the offset of the two clocks is claimed, how many of these are
right, and whether the intervals hold, where it is not claimed as well; how often the interval of 95 % of the
temperature coefficient holds the truth and how wide it is, beside the published form; the same of the time constants;
and whether logs without information are refused. The clocks are aligned by the estimate, or, where that is refused, by
the truth with an error of 0.05 s. Beside the offsets stands what the logs allow at best
(`tests.formulas.thermal.recovery_bound`), and both once more for logs of 5 to 8 loads in place of 2 to 4.
"""

import time
from collections.abc import Iterable
from multiprocessing import Pool
from typing import NamedTuple

import numpy as np

from profsvc.formulas.sensors.resampling import interpolate_at
from profsvc.formulas.thermal.clock_offset.two_logs import INTERVAL_STANDARD_ERRORS, Offset, estimate_offset
from profsvc.formulas.thermal.coefficient.coefficient_fit import fit_coefficient
from profsvc.formulas.thermal.coefficient.temperature_coefficient import Coefficient
from profsvc.formulas.thermal.time_constants.rc_fit_under_load import LoadFit, fit_load
from profsvc.formulas.thermal.time_constants.rc_fits import is_known_within
from tests.command_line import parser_of
from tests.formulas.thermal import synthetic_logs
from tests.formulas.thermal.recovery_bound import Least, least_errors, right_at_best
from tests.formulas.thermal.synthetic_logs import Log, Truth

SEED = 20
AT_ONCE = 50
OFFSET_ERROR_S = 0.05
WITHIN_S = 0.2
WITHIN = 0.05  # of a time constant
BOUNDED = ("informative", "many_loads")
MANY_LOADS = 0.3  # of the logs


class Found(NamedTuple):
    """What came out of one log, the truth, and the least standard errors of what is asked for."""

    truth: Truth
    least: Least
    offset: Offset
    coefficient: Coefficient
    constants: LoadFit


def joined(log: Log, shift_s: float) -> np.ndarray:
    """Temperature at the stamps of the power; nothing across a gap of more than 3 s."""
    stamps = log.temperature_time_s - shift_s
    return interpolate_at(log.power_time_s, stamps, log.temperature_c, gap_s=3.0).value


def coefficient_of(log: Log, shift_s: float, offset_error_s: float = OFFSET_ERROR_S, law: str = "auto") -> Coefficient:
    """The coefficient by marks of the loads, the fan taken out."""
    segment = log.segments()
    return fit_coefficient(
        log.power_time_s, log.power_w, joined(log, shift_s), segment, load=log.load[segment], clock=log.clock_mhz,
        throttled=log.throttled, fan_w=log.fan_w, fan="removed", offset_error_s=offset_error_s, law=law,
    )  # fmt: skip


def recovered(log: Log, least: Least, rng: np.random.Generator) -> Found:
    """Everything from one log."""
    net = log.power_w - log.fan_w
    offset = estimate_offset(log.power_time_s, net, log.temperature_time_s, log.temperature_c)
    shift, error = float(offset.offset_s), float(offset.se_s)
    if offset.refused:
        shift, error = log.truth.shift_s + OFFSET_ERROR_S * rng.standard_normal(), OFFSET_ERROR_S
    constants = fit_load(
        log.power_time_s, net, log.temperature_time_s - shift, log.temperature_c, offset_error_s=error,
        offset_estimated=not offset.refused,
    )  # fmt: skip
    return Found(log.truth, least, offset, coefficient_of(log, shift, error), constants)


def some(task: tuple[int, int, str]) -> list[Found]:
    """A share of the logs of one kind."""
    seed, count, kind = task
    rng = np.random.default_rng(seed)
    least = least_errors(seed, count, kind) if kind in BOUNDED else [Least(*[np.nan] * 3)] * count
    logs = synthetic_logs.simulate(seed, count, kind)
    return [recovered(log, own, rng) for log, own in zip(logs, least, strict=True)]


def covered(found: Iterable[Found]) -> np.ndarray:
    """Whether each interval that was given holds the truth."""
    given = [(f.truth.sigma_w_per_c, f.coefficient) for f in found if not f.coefficient.refusal]
    return np.array([c.low_w_per_c <= sigma <= c.high_w_per_c for sigma, c in given])


def report_offset(found: list[Found]) -> None:
    """How many offsets are claimed, how many of these are right, whether all intervals hold, and the bound."""
    told = [f for f in found if np.isfinite(f.offset.low_s)]
    error = np.array([(f.offset.low_s + f.offset.high_s) / 2 - f.truth.shift_s for f in told])
    half = np.array([f.offset.high_s - f.offset.low_s for f in told]) / 2
    claimed = np.array([not f.offset.refused for f in told])
    more = np.array([f.offset.more_steps for f in told])[~claimed]
    least = np.array([f.least.offset_s for f in told])
    allows = INTERVAL_STANDARD_ERRORS * least < WITHIN_S
    right = np.abs(error) < WITHIN_S
    print(f"offset of the clocks: claimed in {claimed.sum()} of {len(found)} logs, {claimed.sum() / len(found):.1%}")
    print(f"  claimed, right within {WITHIN_S} s             {np.mean(right[claimed]):.1%}   (aim: 95 %)")
    print(f"  claimed or not, right within {WITHIN_S} s      {np.mean(right):.1%} of {len(told)}")
    print(f"  the same, of the logs that allow it     {np.mean(right[allows]):.1%} of {allows.sum()}")
    print(f"  the same at best, by the bound          {np.mean(right_at_best(least, WITHIN_S)):.1%} of all")
    print(f"  intervals of 95 % that hold the truth   {np.mean(np.abs(error) < half):.1%}   (aim: 93 to 97 %)")
    print(f"  of those claimed                        {np.mean((np.abs(error) < half)[claimed]):.1%}")
    print(f"  half width of all, median               {np.median(half):.3f} s")
    print(f"  the same at best, by the bound          {INTERVAL_STANDARD_ERRORS * np.median(least):.3f} s")
    print(f"  error, root mean square, claimed        {np.sqrt(np.mean(error[claimed] ** 2)):.3f} s")
    print(f"  steps more that the others ask for      {np.median(more):.0f}, median")


def report_coefficient(found: list[Found]) -> None:
    """Coverage and errors of the coefficient."""
    held = covered(found)
    given = [f for f in found if not f.coefficient.refusal]
    truth = np.array([f.truth.sigma_w_per_c for f in given])
    ours, theirs, error = (
        np.array([getattr(f.coefficient, name) for f in given]) / truth
        for name in ("coefficient_w_per_c", "published_w_per_c", "standard_error_w_per_c")
    )
    print(f"temperature coefficient: {len(given)} of {len(found)} logs answered")
    print(f"  intervals of 95 % that hold the truth   {held.mean():.1%}   (aim: 93 to 97 %)")
    print(f"  their half width, median, of the truth  {1.96 * np.median(error):.1%}")
    print(f"  error, root mean square                 {np.sqrt(np.mean((ours - 1) ** 2)):.1%}")
    print(f"  error of the published endpoint form    {np.sqrt(np.mean((theirs - 1) ** 2)):.1%}")
    agree = np.array([f.coefficient.loads_probability for f in given])
    print(f"  loads said to differ at 5 %             {np.mean(agree[~np.isnan(agree)] < 0.05):.1%}")


def report_constants(found: list[Found]) -> None:
    """Errors of the time constants beside the bound, by what the board has; claimed is what is known within 5 %."""
    print("\ntime constants            logs  answered  two found   claimed   claimed, within 5 %   all, within 5 %   "
          "at best   interval holds   half width")  # fmt: skip
    for kind in ("one constant", "a faster beside", "a slower beside"):
        here = [f for f in found if kind_of(f.truth) == kind]
        given = [f for f in here if not f.constants.refusal]
        two = np.mean([f.constants.rc_rise_s.size == 2 for f in given])
        for name in ("rise", "decay"):
            value, low, high, truth = np.array([main_constant(f, name) for f in given]).T
            claimed, near = is_known_within(value, low, high), np.abs(value / truth - 1) < WITHIN
            best = np.mean(right_at_best(np.array([getattr(f.least, name) for f in here]), WITHIN))
            print(
                f"  {kind:16}{name:6}{len(here):6}{len(given):10}{two:11.1%}{claimed.sum() / len(here):10.1%}"
                f"{near[claimed].mean():22.1%}{near.mean():18.1%}{best:10.1%}"
                f"{np.mean((low <= truth) & (truth <= high)):17.1%}{np.nanmedian((high - low) / 2 / value):13.1%}"
            )


def main_constant(f: Found, name: str) -> tuple[float, float, float, float]:
    """The constant of the die with its interval, and the true one: by its rank, or by its part where ranks differ."""
    both = f.truth.resistance_c_per_w[1] > 0 and f.constants.rc_rise_s.size == 2
    rank = int(f.truth.rc_rise_s[0] > f.truth.rc_rise_s[1])
    k = rank if both else int(np.argmax(f.constants.resistance_c_per_w))
    value, low, high = (float(getattr(f.constants, f"rc_{name}_{end}")[k]) for end in ("s", "low_s", "high_s"))
    return value, low, high, float(getattr(f.truth, f"rc_{name}_s")[0])


def kind_of(truth: Truth) -> str:
    """What the board has."""
    if truth.resistance_c_per_w[1] == 0:
        return "one constant"
    return "a faster beside" if truth.rc_rise_s[1] < truth.rc_rise_s[0] else "a slower beside"


def main(count: int) -> None:
    """Print all of it."""
    begin = time.perf_counter()
    with Pool(2) as pool:

        def found_in(count: int, kind: str) -> list[Found]:
            shares = [(SEED + k, min(AT_ONCE, count - k), kind) for k in range(0, count, AT_ONCE)]
            return [f for share in pool.imap(some, shares) for f in share]

        found = found_in(count, "informative")
        report_offset(found)
        print("\nwith 5 to 8 loads")
        report_offset(found_in(max(round(MANY_LOADS * count), 1), "many_loads"))
        print()
        report_coefficient(found)
        report_constants(found)
        print("\nlogs without information: coefficient refused, offset refused")
        kinds = synthetic_logs.WITHOUT_INFORMATION
        for kind, share in zip(kinds, pool.imap(some, [(SEED, count // 10, kind) for kind in kinds]), strict=True):
            refused = sum(bool(f.coefficient.refusal) for f in share)
            blind = sum(bool(f.offset.refused) for f in share)
            print(f"  {kind:14}{refused:5}{blind:5} of {len(share)}   such as: {share[0].coefficient.refusal}")
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument("logs", nargs="?", type=int, default=1000, help="number of logs [%(default)s]")
    main(parser.parse_args().logs)
