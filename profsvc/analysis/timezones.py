"""Clocks of logs: a file's own clock to UTC, where the user says its zone, and its offset from the true time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from profsvc.errors import UsageError
from profsvc.tables.on_demand import pd

Int64s = npt.NDArray[np.int64]
_NOT_A_TIME = np.iinfo(np.int64).min


def time_zone(name: str) -> ZoneInfo:
    """Return the time zone called ``name``; raise `UsageError` if there is none.

    >>> time_zone("Europe/Berlin").key
    'Europe/Berlin'
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"no time zone is named {name!r}; give an IANA name such as UTC or Europe/Berlin") from None


@dataclass
class _Steps:
    """The last reading of a sensor if it is placed, and the longest step so far and how often time went back."""

    last_ns: int | None = None
    longest_ns: int = 0
    backwards: int = 0

    def place(self, passes_ns: Iterable[int]) -> int | None:
        """Return the time of a reading whose hour comes twice, of its two; None if the readings before do not tell it.

        One of them follows the reading before by no more than twice the longest step so far, the other does not.
        """
        if self.last_ns is None:
            return None
        near = [ns for ns in passes_ns if 0 <= ns - self.last_ns <= 2 * self.longest_ns]
        if len(near) == 1:
            return near[0]
        self.last_ns = None  # the next one follows a reading that has no place
        return None

    def pass_by(self, ns: Int64s) -> None:
        """Go on behind placed readings."""
        steps = np.diff(ns) if self.last_ns is None else np.diff(ns, prepend=self.last_ns)
        self.backwards += int(np.count_nonzero(steps < 0))
        self.longest_ns, self.last_ns = max(self.longest_ns, int(steps.max(initial=0))), int(ns[-1])


class SampleClock:
    """Brings the samples of one file to UTC, batch by batch.

    A file's own clock is taken to stand in ``zone``. In an hour that comes twice (the end of daylight saving) the
    readings before tell which of the two it is. Where they do not, and in an hour that is skipped, the time stays null.
    ``offset_s`` is what the clock was ahead of the true time: it is taken off.
    """

    def __init__(self, zone: ZoneInfo | None, offset_s: float) -> None:
        """Begin a file."""
        self._zone, self._offset_ns = zone, round(offset_s * 1e9)
        self._steps: defaultdict[int, _Steps] = defaultdict(_Steps)
        self._origin_ns: int | None = None
        self._untold = 0

    def in_utc(self, samples: pd.DataFrame) -> pd.DataFrame:
        """Return tidy samples with ``time_ns`` in UTC; where it was not known before, ``elapsed_ns`` follows it.

        >>> made = {"sensor_index": [0], "time_ns": [None], "local_ns": [3_600_000_000_000], "elapsed_ns": [0]}
        >>> clock = SampleClock(time_zone("Europe/Berlin"), 0.5)
        >>> clock.in_utc(pd.DataFrame(made, dtype="Int64"))["time_ns"].tolist()
        [-500000000]
        """
        time, elapsed = samples["time_ns"].copy(), samples["elapsed_ns"].copy()
        local = samples.loc[time.isna() & samples["local_ns"].notna(), "local_ns"].astype("int64")
        if self._zone is not None and len(local):
            placed = self._placed(local, samples.loc[local.index, "sensor_index"].to_numpy(np.int64))
            self._untold += len(local) - len(placed)
            time.loc[placed.index] = placed
            if self._origin_ns is None and len(placed):
                self._origin_ns = int(placed.iloc[0]) - int(elapsed.loc[placed.index[0]])
            elapsed.loc[placed.index] = placed - (self._origin_ns or 0)
        return samples.assign(time_ns=(time - self._offset_ns).astype("Int64"), elapsed_ns=elapsed)

    def backwards(self) -> dict[int, int]:
        """Return how often the time in UTC goes back, by the index of each sensor that was brought there."""
        return {sensor: steps.backwards for sensor, steps in self._steps.items()}

    def warnings(self) -> list[str]:
        """Return how many readings have no time, in words; nothing if all have one."""
        if not self._untold:
            return []
        hour = "an hour that comes twice or never when clocks change"
        return [f"{self._untold} readings have no time in UTC: in {self._zone} theirs lies in {hour}"]

    def _placed(self, local: pd.Series[int], sensors: Int64s) -> pd.Series[int]:
        """Return the times that a local clock shows, where they can be told, under the index of ``local``."""
        first, second = _passes(local, self._zone)
        found = first.copy()
        order = np.argsort(sensors, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(sensors[order])) + 1):
            steps, is_twice = self._steps[int(sensors[rows[0]])], first[rows] != second[rows]
            for part in np.split(rows, np.flatnonzero(np.diff(is_twice)) + 1):
                if first[part[0]] == second[part[0]]:
                    known = found[part][found[part] != _NOT_A_TIME]
                    if len(known):
                        steps.pass_by(known)
                    continue
                for row in part.tolist():
                    told = steps.place((int(first[row]), int(second[row])))
                    found[row] = _NOT_A_TIME if told is None else told
                    if told is not None:
                        steps.pass_by(found[row : row + 1])
        is_told = found != _NOT_A_TIME
        return pd.Series(found[is_told], local.index[is_told])


def _passes(local: pd.Series[int], zone: ZoneInfo | None) -> tuple[Int64s, Int64s]:
    """Return the first and the second time at which a local clock shows something; equal unless the hour comes twice.

    `_NOT_A_TIME` stands where the clock never shows it.
    """
    clock = pd.to_datetime(local, unit="ns").dt
    shown = []
    for is_dst in (True, False):
        moments = clock.tz_localize(zone, ambiguous=np.full(len(local), is_dst), nonexistent="NaT").dt.tz_convert("UTC")
        shown.append(moments.astype("datetime64[ns, UTC]").astype("int64").to_numpy())
    return np.minimum(*shown), np.maximum(*shown)


def ranges_in_utc(ranges: pd.DataFrame, zone: ZoneInfo | None, offset_s: float) -> pd.DataFrame:
    """Return tidy ranges of a file's own clock with ``start_ns`` in UTC, and their durations as time that passed.

    Where a start cannot be placed, it is null, and the duration stays. Without a ``zone`` only ``offset_s`` is taken
    off.

    >>> made = pd.DataFrame({"start_ns": [3_600_000_000_000], "duration_ns": [1e9]})
    >>> ranges_in_utc(made, time_zone("Europe/Berlin"), 0.5)["start_ns"].tolist()
    [-500000000]
    """
    if zone is None:
        return ranges.assign(start_ns=(ranges["start_ns"] - round(offset_s * 1e9)).astype("Int64"))
    starts, lasted = ranges["start_ns"].astype("int64"), ranges["duration_ns"].fillna(0).astype("int64")
    (start, other_start), (end, other_end) = (_passes(ns, zone) for ns in (starts, starts + lasted))
    is_told = (start == other_start) & (start != _NOT_A_TIME)
    both = is_told & (end == other_end) & (end != _NOT_A_TIME)
    return ranges.assign(
        start_ns=pd.Series(start - round(offset_s * 1e9), ranges.index, "Int64").where(is_told),
        duration_ns=ranges["duration_ns"].where(~both | ranges["duration_ns"].isna(), end - start),
    )
