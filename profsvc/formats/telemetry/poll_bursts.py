"""GPUs without an index: each poll prints one row per GPU, so rows come in bursts with as many rows as GPUs.

The first rows of a log show the size of its bursts. The place of a row in its burst is then its GPU. A burst of another
size is rejected, because the missing GPU is unknown; only the last burst of a file may be short.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profsvc.formats.parsing.timestamps import Int64s
from profsvc.formats.timeseries.sensor_logs.log import Log

MAX_GPUS = 64
MILLISECOND = 1_000_000
# Minimum of complete bursts, minimum ratio of the gaps between bursts to those inside, maximum gap inside a burst in
# ns: the fewer the bursts, the stricter the other criteria.
BURST_CRITERIA = ((2, 4, 1000 * MILLISECOND), (1, 20, 20 * MILLISECOND))
# The minimum share of bursts of the usual size; the others lack a row.
MIN_USUAL_SHARE = 2 / 3


@dataclass
class Bursts:
    """Splits the rows of a log into bursts of ``size`` rows; a gap above ``gap_ns`` begins one."""

    size: int
    gap_ns: int

    def flush(self, log: Log, final: bool) -> None:
        """Pass on the complete bursts in ``log``; the last one waits, unless ``final`` means that no row can follow."""
        rows, lines = log.take_waiting()
        time = next((place for place, column in enumerate(log.columns) if column.role == "time"), None)
        if time is None or not rows:
            log.restore(rows, lines)
            log.flush()
            return
        ns, good = log.clock.read([row[time].strip() for row in rows])
        steps = np.where(good[1:] & good[:-1], np.diff(ns), 0)
        begins = [0, *(np.flatnonzero(steps > self.gap_ns) + 1).tolist()]
        ends = [*begins[1:], len(rows)]
        # A burst that never ends is not a burst; its rows must not accumulate.
        if not final and len(rows) - begins[-1] <= MAX_GPUS:
            begin = begins.pop()
            ends.pop()
            rest = rows[begin:], lines[begin:]
        else:
            rest = [], []
        self._pass_on(log, rows, lines, list(zip(begins, ends, strict=True)), final)
        log.restore(*rest)

    def _pass_on(
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
            reason = f"the poll has {count} rows where others have {self.size}, so the GPU of this row is unknown"
            for row in range(begin, end):
                log.reject(lines[row], ",".join(rows[row]), reason)
        log.restore([rows[row] for row in kept], [lines[row] for row in kept])
        log.flush(gpus)


def bursts_of(ns: Int64s | None) -> Bursts | None:
    """Return the bursts of rows at these times; None if there are none, or they are not clear.

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
        clear = any(
            count >= fewest and between > ratio * inside and inside <= most for fewest, ratio, most in BURST_CRITERIA
        )
        if 2 <= size <= MAX_GPUS and count >= len(sizes) * MIN_USUAL_SHARE and clear:
            return Bursts(size, inside + (between - inside) // 2)
    return None
