"""Totals per kind of transfer and file: number, duration and size."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.store.connection.sql import Connection
from profsvc.store.ingest.inserts.column_values import factorize_numbers
from profsvc.store.ingest.inserts.row_insert import insert_rows
from profsvc.tables.column_tables import Integers, integers_of

MAX_INTEGER = 2**63 - 1
Floats = npt.NDArray[np.float64]


class TransferTotal(NamedTuple):
    """The totals of a kind of transfer in a file; null if no transfer has a duration or a size."""

    transfers: int = 0
    total_ns: float | None = None
    bytes: int | None = None


class TransferTotals:
    """Sums up transfers, batch by batch."""

    def __init__(self) -> None:
        """Begin without transfers."""
        self._kinds: dict[int, TransferTotal] = {}

    def add(self, kind_ids: Integers, durations: Floats, sizes: Integers) -> None:
        """Add the kind, duration in ns and size in bytes of each transfer."""
        codes, kinds = factorize_numbers(integers_of(kind_ids).values)
        ns, sizes = durations, integers_of(sizes)
        for code, kind in enumerate(kinds.tolist()):
            own = codes == code
            timed, sized = own & ~np.isnan(ns), own & ~sizes.missing
            before = self._kinds.get(kind, TransferTotal())
            self._kinds[kind] = TransferTotal(
                before.transfers + int(own.sum()),
                (before.total_ns or 0.0) + float(ns[timed].sum()) if timed.any() else before.total_ns,
                (before.bytes or 0) + _exact_sum(sizes.values[sized]) if sized.any() else before.bytes,
            )

    def save(self, connection: Connection, upload_id: int) -> None:
        """Write the totals of a whole upload."""
        rows = [
            (upload_id, kind, one.transfers, one.total_ns, one.bytes if (one.bytes or 0) <= MAX_INTEGER else None)
            for kind, one in sorted(self._kinds.items())
        ]
        insert_rows(connection, "transfer_totals", ("upload_id", "kind_id", *TransferTotal._fields), rows)


def _exact_sum(values: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """Return the sum of integers, which may exceed 64 bits.

    >>> _exact_sum(np.array([2**62, 2**62, 2**62]))
    13835058055282163712
    """
    high, low = values >> 32, values & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())
