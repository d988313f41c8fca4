"""The ten categories of an application by what limits its memory requests."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from profsvc.formulas.numerics.arrays import Mask, arrays, floats, is_implausible, mask
from profsvc.formulas.numerics.flags import Flag

SLACK = 0.85
"""Share of the requests needed from which on the bandwidth is just enough."""


class Category(NamedTuple):
    """Category 1 to 10; 0 where it is not known."""

    category: NDArray[np.int8]
    flags: Mask


def category(
    N: ArrayLike, InfiN: ArrayLike, app: ArrayLike, proc: ArrayLike, bw: ArrayLike, slack: float = SLACK
) -> Category:
    r"""Category of an application: whether its warps, the departure of requests and the bandwidth suffice.

    With too few warps (N < InfiN) 1 to 5, else 6 to 10; in each half: departure and bandwidth both too low, departure
    alone, bandwidth below 0.85 of what is needed, bandwidth just enough, nothing. Their texts and their order of merit
    are `profsvc.specs.advice.categories`.

    Source: [Hong2012] figures 114 and 115.

    Args:
        N: Warps resident on an SM [count].
        InfiN: Warps that hide a memory period, see `mwp_app` [warps].
        app: Requests the application needs [requests].
        proc: Requests that may depart within a latency [requests].
        bw: Requests at which the bandwidth is used up [requests].
        slack: Share of the requests needed from which on the bandwidth is just enough [1].

    Returns: Category.

    Range: 1 to 10; exactly one applies. An inf means unlimited. A number that is negative or NaN: 0, INPUT_SUSPECT.

    Errors: TypeError for a wrong dtype, ValueError for shapes that do not broadcast.

    Too few warps and nothing else wrong; enough warps, and the bandwidth just enough:

    >>> category([4, 32], 20, [4, 20], 100, [30, 18]).category.tolist()
    [5, 9]
    """
    n, I, A, P, B = floats(N=N, InfiN=InfiN, app=app, proc=proc, bw=bw)
    bad = is_implausible(*(np.where(np.isposinf(x), 0.0, x) for x in (n, I, A, P, B)))
    free = np.where(slack * A > B, 3, np.where(A > B, 4, 5))
    k = np.where(P < A, np.where(B < A, 1, 2), free) + 5 * (n >= I)
    return Category(*arrays(np.where(bad, 0, k).astype(np.int8), mask((Flag.INPUT_SUSPECT, bad))))
