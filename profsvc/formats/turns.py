"""Logs whose rows take turns: a column tells of which GPU, or of which sensor, each row is.

Without it the readings of all of them would make one sensor. A column is believed by its name and its cells: words
under a name such as Sensor, whole numbers under a name such as gpu_index. Under a name that may as well head a reading
or a count, such as gpu, whole numbers are believed only where they come again and again in one order.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.block_columns import combinations
from profsvc.formats.clock import Int64s
from profsvc.formats.meter_blocks import Texts
from profsvc.formats.readings import MOST_CHANNELS, Channel
from profsvc.formats.sensor_log import gpu_number

GPU, NAME = "gpu", "name"
# Names of columns, their letters alone: what numbers under them say, whatever their order, and what in turns.
_INDICES = {"gpuindex", "gpuid", "gpuidx", "gpunum", "gpunumber", "cardindex", "cardid"}
_TURNING = {"gpu": GPU, "card": GPU, "index": GPU, "deviceindex": GPU, "deviceid": GPU, "device": GPU}
_NAMING = {"sensor", "sensorname", "sensorid", "channel", "channelname", "channelid", "probe", "probename", "probeid"}
_NAMING |= {"device", "devicename", "meter", "metername", "rail", "domain", "node", "nodename", "host", "hostname"}
_NAMING |= {"location", "room", "id", "socket", "package", "core", "cpu"}
# More are no boards of one machine, and no sensors of one log.
MOST_GPUS, MOST_NAMES = 64, 512
# So many rows of a hundred may break the order, as a reading may be lost.
LOST_PERCENT = 5


def candidates(labels: Sequence[str], clocks: set[int]) -> dict[int, str]:
    """Return the columns that may tell the rows apart, by place, each with the letters of its name.

    >>> candidates(["time", "gpu_index", "power_w"], {0})
    {1: 'gpuindex'}
    """
    words = {place: re.sub(r"[^a-z]", "", label.lower()) for place, label in enumerate(labels) if place not in clocks}
    return {place: word for place, word in words.items() if word in _INDICES | _NAMING or word in _TURNING}


@dataclass
class _Seen:
    """What was seen of a column: how often each cell followed each other."""

    rows: int = 0
    last: str | None = None
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    cells: set[str] = field(default_factory=set)

    def add(self, cell: str) -> None:
        if len(self.cells) > MOST_NAMES:
            return
        self.rows += 1
        self.cells.add(cell)
        if self.last is not None:
            self.pairs[self.last, cell] += 1
        self.last = cell

    def add_block(self, texts: Texts) -> None:
        """Take in the cells of many rows, of which there are few different ones."""
        cells = [*([self.last] if self.last is not None else []), *texts.distinct]
        codes = texts.codes.astype(np.int64) + len(cells) - len(texts.distinct)
        if len(cells) > len(texts.distinct):
            codes = np.concatenate(([0], codes))
        pairs, times = np.unique(codes[:-1] * len(cells) + codes[1:], return_counts=True)
        for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
            self.pairs[cells[pair // len(cells)], cells[pair % len(cells)]] += count
        self.rows += len(texts.codes)
        self.cells.update(texts.distinct)
        self.last = cells[codes[-1]]

    @property
    def turns(self) -> bool:
        """Whether the cells come again and again in one order."""
        if not 1 < len(self.cells) <= MOST_GPUS or self.rows < 2 * len(self.cells):
            return False
        usual: Counter[str] = Counter()
        for (cell, _), times in self.pairs.items():
            usual[cell] = max(usual[cell], times)
        following = {after for (cell, after), times in self.pairs.items() if times == usual[cell] and after != cell}
        broken = self.rows - 1 - sum(usual.values())
        return len(following) >= len(self.cells) and broken * 100 <= LOST_PERCENT * self.rows


def _role(word: str, seen: _Seen) -> str | None:
    """Return what a column tells of its rows: of which GPU they are, or of what that has a name; None if neither."""
    told = {cell for cell in seen.cells if cell}
    # turbostat prints a dash for the sum of all.
    if all(gpu_number(cell) is not None for cell in told - {"-"}):
        if word in _INDICES:
            return GPU if 0 < len(told) <= MOST_GPUS else None
        return (_TURNING.get(word) or NAME) if seen.turns else None
    is_words = not any(re.fullmatch(r"[-+.,0-9eE]+", cell) for cell in told)
    return NAME if word in _NAMING and is_words and 1 < len(told) <= MOST_NAMES else None


@dataclass
class Turns:
    """Looks at all rows of a file for columns that tell them apart; ``said`` are those that the user names."""

    said: Mapping[int, str] = field(default_factory=dict)
    _words: dict[int, str] = field(default_factory=dict)
    _seen: dict[int, _Seen] = field(default_factory=dict)

    def begin(self, words: Mapping[int, str], said: Mapping[int, str]) -> None:
        """Begin a table."""
        self.said = said
        self._words = {place: word for place, word in words.items() if place not in said}
        self._seen = {place: _Seen() for place in self._words}

    def add(self, cells: Sequence[str]) -> None:
        """Take in a row."""
        for place, seen in self._seen.items():
            seen.add(cells[place])

    @property
    def watched(self) -> list[int]:
        """The columns of which more rows may still say something."""
        return [place for place, seen in self._seen.items() if len(seen.cells) <= MOST_NAMES]

    def add_block(self, texts: Mapping[int, Texts]) -> None:
        """Take in many rows by the texts of their columns, all of which are watched."""
        for place in self.watched:
            self._seen[place].add_block(texts[place])

    def decide(self) -> "Split":
        """Return how the rows are told apart."""
        roles = {place: role for place, seen in self._seen.items() if (role := _role(self._words[place], seen))}
        return Split({**roles, **self.said})


@dataclass
class Split:
    """Gives each row the channels of the GPU or the sensor that it is of; ``roles`` are the columns that tell it."""

    roles: Mapping[int, str]
    _first: dict[tuple[str, ...], int] = field(default_factory=dict)

    def owners(self, cells: Sequence[str], plain: Sequence[Channel], every: list[Channel]) -> range | None:
        """Return the places of the channels of a row in ``every``, which grows with each new one.

        ``plain`` are the channels of a table whose rows are all of one.
        """
        if not self.roles:
            return None
        first = self._place(tuple(cells[place] for place in self.roles), plain, every)
        return range(first, first + len(plain))

    def owners_of(
        self, texts: Mapping[int, Texts], plain: Sequence[Channel], every: list[Channel]
    ) -> Callable[[], Int64s]:
        """Return what gives the place in ``every`` of the first channel of each row of a block, as `owners` does."""

        def firsts() -> Int64s:
            columns = [texts[place] for place in self.roles]
            which, rows = combinations([(len(one.distinct), one.codes) for one in columns])
            keys = [tuple(one.distinct[one.codes[row]] for one in columns) for row in rows.tolist()]
            return np.array([self._place(key, plain, every) for key in keys], np.int64)[which]

        return firsts

    def _place(self, key: tuple[str, ...], plain: Sequence[Channel], every: list[Channel]) -> int:
        first = self._first.get(key)
        if first is None:
            first = self._first[key] = len(every)
            every += [self._channel(one, key) for one in plain]
            if len(every) > MOST_CHANNELS:
                raise BrokenInputError(
                    f"{len(self._first)} different {', '.join(self.roles.values())}s with {len(plain)} columns of "
                    f"readings each are more than {MOST_CHANNELS} sensors, which no log has; check the file"
                )
        return first

    def _channel(self, one: Channel, key: tuple[str, ...]) -> Channel:
        for role, cell in zip(self.roles.values(), key, strict=True):
            gpu = gpu_number(cell) if role == GPU else None
            # What is no index tells the rows apart all the same.
            one = replace(one, gpu=gpu) if gpu is not None else replace(one, name=f"{cell} {one.name}".strip())
        return one
