"""Uploads that wait to be stored in the same run: the last of them has the results of all computed."""

import itertools
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
        self._numbers = itertools.count()
        self._newest: dict[Hashable, int] = {}

    def come(self, run: Hashable) -> int:
        """Count an upload that is received, and number it; ``run`` is what its client calls the run."""
        with self._lock:
            self._waiting[run] += 1
            self._newest[run] = next(self._numbers)
            return self._newest[run]

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
            if run in self._lacking and run not in self._ended:
                return set()
            return self._end(run)

    def give_up(self, run: Hashable, newest: int) -> set[int]:
        """Return the runs to compute if none came after the ``newest`` upload, whose client said that more follow."""
        with self._lock:
            is_over = run not in self._waiting and self._newest.get(run) == newest
            return self._end(run) if is_over else set()

    def _end(self, run: Hashable) -> set[int]:
        self._newest.pop(run, None)
        self._ended.discard(run)
        return self._lacking.pop(run, set())
