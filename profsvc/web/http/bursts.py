"""Uploads that wait to be stored in the same run: the last of them has the results of all computed."""

import threading
from collections import Counter
from collections.abc import Hashable


class Bursts:
    """Which runs further uploads wait for, and which runs lack results since those will compute them."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = threading.Lock()
        self._waiting: Counter[Hashable] = Counter()
        self._lacking: dict[Hashable, set[int]] = {}
        self._ended: set[Hashable] = set()

    def come(self, run: Hashable) -> None:
        """Count an upload that is received; ``run`` is what its client calls the run."""
        with self._lock:
            self._waiting[run] += 1

    def is_last(self, run: Hashable) -> bool:
        """Tell whether no other upload waits for the run."""
        with self._lock:
            return self._waiting[run] < 2

    def leave_results(self, run: Hashable, run_id: int) -> None:
        """Note that an upload is stored whose results are not computed yet."""
        with self._lock:
            self._lacking.setdefault(run, set()).add(run_id)

    def go(self, run: Hashable, *, more: bool = False) -> set[int]:
        """Forget an upload that is done or refused; return the runs to compute, if it was the last.

        It is not while others wait, nor if its client said of all since the last that ``more`` follow.
        """
        with self._lock:
            self._waiting[run] -= 1
            if not more:
                self._ended.add(run)
            if self._waiting[run]:
                return set()
            del self._waiting[run]
            if run not in self._ended:
                return set()
            self._ended.discard(run)
            return self._lacking.pop(run, set())
