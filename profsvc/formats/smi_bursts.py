"""GPUs without an index: a poll prints a row a GPU at once, so rows come in bursts of as many as there are GPUs.

The first rows of a log tell the size of its bursts, if it has any. Then the place of a row in its burst is its GPU. A
burst of another size is rejected, because nobody knows which GPU it lacks; only the last one of a file may be short.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profsvc.formats.clock import Int64s
from profsvc.formats.sensor_log import Log

MOST_GPUS = 64
MILLISECOND = 1_000_000
# With at least so many whole bursts before the last, every gap between bursts must be so many times longer than any gap
# inside one, and that must be below so many ns: the fewer the bursts, the clearer they must be.
CLEAR = ((2, 4, 1000 * MILLISECOND), (1, 20, 20 * MILLISECOND))
# The share of the bursts that must be of one size; the others lack a row.
USUAL_SHARE = 2 / 3


@dataclass
class Bursts:
    """Splits the rows of a log into bursts of ``size`` rows; a gap above ``gap_ns`` begins one."""

    size: int
    gap_ns: int

    def flush(self, log: Log, final: bool) -> None:
        """Hand on the whole bursts that wait in ``log``; the last one stays, unless no row can follow."""
        rows, lines = log.waiting()
        time = next((place for place, column in enumerate(log.columns) if column.role == "time"), None)
        if time is None or not rows:
            log.restore(rows, lines)
            log.flush()
            return
        ns, good = log.clock.read([row[time].strip() for row in rows])
        steps = np.where(good[1:] & good[:-1], np.diff(ns), 0)
        begins = [0, *(np.flatnonzero(steps > self.gap_ns) + 1).tolist()]
        ends = [*begins[1:], len(rows)]
        # A burst without end is none; its rows must not gather.
        if not final and len(rows) - begins[-1] <= MOST_GPUS:
            begin = begins.pop()
            ends.pop()
            rest = rows[begin:], lines[begin:]
        else:
            rest = [], []
        self._hand_on(log, rows, lines, list(zip(begins, ends, strict=True)), final)
        log.restore(*rest)

    def _hand_on(
        self, log: Log, rows: list[Sequence[str]], lines: list[int], bursts: list[tuple[int, int]], final: bool
    ) -> None:
        kept: list[int] = []
        gpus: list[int] = []
        for begin, end in bursts:
            count = end - begin
            if count == self.size or (final and count < self.size and end == len(rows)):
                kept += range(begin, end)
                gpus += range(count)
                continue
            reason = f"a poll of {count} rows where others have {self.size}: of which GPU this is cannot be told"
            for row in range(begin, end):
                log.reject(lines[row], ",".join(rows[row]), reason)
        log.restore([rows[row] for row in kept], [lines[row] for row in kept])
        log.flush(gpus)


def bursts_of(ns: Int64s | None) -> Bursts | None:
    """Return the bursts that rows at these times come in; None if every row stands alone, or nobody can tell.

    >>> import numpy as np
    >>> bursts_of(np.array([0, 4, 1000, 1003, 2000, 2005, 3000]) * 1_000_000)
    Bursts(size=2, gap_ns=500000000)
    """
    if ns is None or len(ns) < 4:
        return None
    steps = np.diff(ns)
    sorted_steps = np.unique(steps)
    for inside, between in zip(sorted_steps[:-1].tolist(), sorted_steps[1:].tolist(), strict=True):
        if between < 4 * max(inside, MILLISECOND):
            continue
        begins = np.concatenate(([0], np.flatnonzero(steps > inside) + 1))
        # The last burst may be cut.
        sizes = np.diff(begins)
        size = int(np.bincount(sizes).argmax())
        count = int((sizes == size).sum())
        clear = any(count >= fewest and between > ratio * inside and inside <= most for fewest, ratio, most in CLEAR)
        if 2 <= size <= MOST_GPUS and count >= len(sizes) * USUAL_SHARE and clear:
            return Bursts(size, inside + (between - inside) // 2)
    return None
