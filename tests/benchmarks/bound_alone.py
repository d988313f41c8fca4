"""The share of steps that no rule exceeds in a series alone, whose noise no siblings tell.

Run it with ``python -m tests.benchmarks.bound_alone [NIGHTS ...]``; ``--draws 5000`` for less.

A rule that finds steps within five nights, and has two new findings in 1000 quiet nights at most, is a test of those
five nights with an error of 1 %. It must err as seldom whatever the autocorrelation of the noise is, for nothing tells
it. By the lemma of Neyman and Pearson no test of error 1 % against a *mixture* of autocorrelations finds more steps
than the ratio of likelihoods, and what errs in 1 % under each errs in 1 % under every mixture. So each mixture gives a
bound, and the least favourable one the least (Lehmann and Romano 2005, section 3.8). It is sought by raising the share
of the autocorrelations under which the ratio errs more often, after Elliott, Müller and Watson (2015); any share gives
a bound, so nothing hangs on how near the search comes.

The test knows the night, the size and the law of the step, up and down as probable, which no report does. It does not
know the level and the sd: units are arbitrary, so it sees the values up to both. *Known* is the same test for which the
autocorrelation is known.
"""

import numpy as np

from tests.benchmarks.detection import HEIGHTS, NIGHTS
from tests.command_line import parser_of
from tests.inputs.noise import Floats, autoregressive

SEED = 20261201
ERROR = NIGHTS * 0.002
QUIET = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
ROUNDS = 500


def forms(x: Floats, history: int, rho: float) -> tuple[Floats, Floats, float, float]:
    """Return x'Mx and x'Mu of each row, u'Mu, and the constant of the logarithm of the likelihood.

    u is 1 since the step, and M the precision of innovations of sd 1 after the level is integrated out.
    """
    nights, since, q = x.shape[1], x.shape[1] - history, 1.0 - rho
    square, ends = (x**2).sum(axis=1), x[:, 0] ** 2 + x[:, -1] ** 2
    product, jump = (x[:, 1:] * x[:, :-1]).sum(axis=1), x[:, history] - x[:, history - 1]
    of_ones, of_step = nights * q**2 + 2 * q * rho, since * q**2 + q * rho
    with_ones = q**2 * x.sum(axis=1) + q * rho * (x[:, 0] + x[:, -1])
    with_step = q**2 * x[:, history:].sum(axis=1) + q * rho * x[:, -1] + rho * jump
    left = (1 + rho**2) * square - rho**2 * ends - 2 * rho * product - with_ones**2 / of_ones
    constant = 0.5 * np.log1p(-(rho**2)) - 0.5 * np.log(of_ones)
    return left, with_step - with_ones * of_step / of_ones, of_step + rho - of_step**2 / of_ones, float(constant)


def log_quiet(x: Floats, history: int, rho: float) -> Floats:
    """Return the logarithm of the likelihood of quiet noise, up to level and sd."""
    left, _, _, constant = forms(x, history, rho)
    return np.asarray(constant - 0.5 * (x.shape[1] - 1) * np.log(left))


def log_stepped(x: Floats, history: int, rho: float, height: float) -> Floats:
    """Return the same of noise with a step of so many sd, up or down."""
    left, with_step, of_step, _ = forms(x, history, rho)
    rise = height / np.sqrt(1 - rho**2)  # in sd of an innovation
    slope = np.abs(rise * with_step / np.sqrt(left))
    # The sd is integrated out, of t^(nights - 2) exp(-t^2 / 2) cosh(slope t): smooth in the slope.
    t = np.linspace(0.0, np.sqrt(x.shape[1]) + 15.0, 2000)[1:]
    weight = (x.shape[1] - 2) * np.log(t) - t**2 / 2
    slopes = np.linspace(0.0, float(slope.max()), 200)
    ways = [np.logaddexp.reduce(weight + np.logaddexp(one * t, -one * t) - np.log(2.0)) for one in slopes]
    gain = np.interp(slope, slopes, np.array(ways)) - np.logaddexp.reduce(weight) - rise**2 * of_step / 2
    return np.asarray(log_quiet(x, history, rho) + gain)


def bound(history: int, height: float, rho: float, quiet: tuple[float, ...], draws: int) -> float:
    """Return the share of steps in noise of ``rho`` that no rule exceeds that errs in 1 % under each of ``quiet``."""
    rng, other = (np.random.default_rng([SEED, history, int(height), int(100 * rho), one]) for one in range(2))

    def ratios(x: Floats) -> Floats:
        stepped = log_stepped(x, history, rho, height)
        return np.stack([np.exp(np.clip(log_quiet(x, history, own) - stepped, -500, 500)) for own in quiet], axis=1)

    def of_quiet() -> list[Floats]:
        return [ratios(autoregressive(rng, draws, history + NIGHTS, own)) for own in quiet]

    tried, share = of_quiet(), np.zeros(len(quiet))
    for number in range(ROUNDS):
        errs = np.array([np.mean(one @ np.exp(share) < 1.0) for one in tried])
        share += 0.99**number * np.clip(np.log(np.maximum(errs, 1e-4) / ERROR), -1.0, 1.0)
    weight = np.exp(share - share.max())
    weight /= weight.sum()
    against = np.concatenate([one @ weight for one in of_quiet()])  # newly drawn: the search fitted the others
    order = np.argsort(against)
    errs = np.cumsum(np.repeat(weight / draws, draws)[order])
    least = against[order][np.searchsorted(errs, ERROR)]
    x = autoregressive(other, draws, history + NIGHTS, rho)
    x[:, history:] += height
    return float(np.mean(ratios(x) @ weight < least))


def main() -> None:
    """Print the bounds."""
    parser = parser_of(__doc__)
    parser.add_argument("nights", nargs="*", type=int, default=[10, 30, 100, 400], help="before the step")
    parser.add_argument("--draws", type=int, default=20_000, help="series of each autocorrelation")
    asked = parser.parse_args()
    print(f"{'noise':12}{'nights':>8}" + "".join(f"{f'{height:g} sd, known':>14}{'unknown':>10}" for height in HEIGHTS))
    for history in asked.nights:
        for rho in (0.0, 0.3, 0.6):
            cells = ""
            for height in HEIGHTS:
                known, mixed = (bound(history, height, rho, quiet, asked.draws) for quiet in ((rho,), QUIET))
                cells += f"{known:14.1%}{min(known, mixed):10.1%}"  # that autocorrelation alone is a mixture too
            print(f"AR(1) {rho:<6g}{history:8}{cells}", flush=True)


if __name__ == "__main__":
    main()
