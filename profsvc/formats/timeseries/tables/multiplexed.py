"""Multiplexed logs: a key column identifies the GPU, or the sensor, of each row.

Without it all readings would be of one sensor. A key column is recognized by its name and its cells: texts under a name
such as Sensor, whole numbers under a name such as gpu_index. Under a name that may also be that of a reading or a
count, such as gpu, whole numbers must repeat in one order, and so must texts under any other name.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.columnar.csv_columns import code_combinations
from profsvc.formats.parsing.numbers import NOT_NUMBERS
from profsvc.formats.parsing.timestamps import Int64s
from profsvc.formats.timeseries.columns import STATES, gpu_number
from profsvc.formats.timeseries.labels import Channel
from profsvc.formats.timeseries.tables.blocks import Texts
from profsvc.formats.timeseries.tables.time_columns import is_numeric

GPU, NAME = "gpu", "name"
# Letters of column names: keys with numbers in any order, and keys with numbers in a repeating order.
_INDICES = {"gpuindex", "gpuid", "gpuidx", "gpunum", "gpunumber", "cardindex", "cardid"}
_TURNING = {"gpu": GPU, "card": GPU, "index": GPU, "deviceindex": GPU, "deviceid": GPU, "device": GPU}
_NAMING = {"sensor", "sensorname", "sensorid", "channel", "channelname", "channelid", "probe", "probename", "probeid"}
_NAMING |= {"device", "devicename", "meter", "metername", "rail", "domain", "node", "nodename", "host", "hostname"}
_NAMING |= {"tile", "tileid", "location", "room", "id", "socket", "package", "core", "cpu"}
# Of Grafana, Prometheus, Home Assistant and others that print one series below the other.
_NAMING |= {
    "series",
    "seriesname",
    "metric",
    "metricname",
    "measurement",
    "signal",
    "variable",
    "parameter",
    "instance",
}
_NAMING |= {"entity", "entityid", "plug", "plugname", "outlet", "outletname", "appliance", "alias"}
# The name of a column whose cells alone tell whether it is a key.
_ANY = ""
# A column that names its two states, such as Throttling [Yes/No].
_STATES = re.compile(r".*[\[(].*/.*[\])]\s*")
# The most GPUs of one machine, and the most sensors of one log.
MAX_GPUS, MAX_NAMES, MAX_SENSORS = 64, 512, 2_000
# The rows in percent that may break the order, as a reading may be lost.
MAX_LOST_PERCENT = 5


def key_column_candidates(labels: Sequence[str], clocks: set[int]) -> dict[int, str]:
    """Return the places of possible key columns, each with the letters of its name.

    >>> key_column_candidates(["time", "gpu_index", "power_w"], {0})
    {1: 'gpuindex', 2: ''}
    """
    words = {place: re.sub(r"[^a-z]", "", label.lower()) for place, label in enumerate(labels) if place not in clocks}
    if any(label.startswith("GPU ") for label in labels):  # of xpu-smi: its devices are those GPUs
        words = {place: "gpuid" if word == "deviceid" else word for place, word in words.items()}
    known = {*_INDICES, *_NAMING, *_TURNING}
    named = {place: word if word in known else _ANY for place, word in words.items()}
    return {
        place: word
        for place, word in named.items()
        if word != _ANY or (labels[place] and not _STATES.fullmatch(labels[place]))
    }


@dataclass
class _Seen:
    """Statistics of a column: how often each cell follows each other."""

    rows: int = 0
    last: str | None = None
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    cells: set[str] = field(default_factory=set)

    def add(self, cell: str) -> None:
        if len(self.cells) > MAX_NAMES:
            return
        self.rows += 1
        self.cells.add(cell)
        if self.last is not None:
            self.pairs[self.last, cell] += 1
        self.last = cell

    def add_block(self, texts: Texts) -> None:
        """Add the cells of many rows, with few distinct ones."""
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
        """Whether the cells repeat in one order; beside the total of turbostat, a dash, they need not repeat."""
        has_total = "-" in self.cells
        if not 1 < len(self.cells) <= (MAX_NAMES if has_total else MAX_GPUS):
            return False
        if has_total and self.rows == len(self.cells):
            return True
        if self.rows < 2 * len(self.cells):
            return False
        usual: Counter[str] = Counter()
        for (cell, _), times in self.pairs.items():
            usual[cell] = max(usual[cell], times)
        following = {after for (cell, after), times in self.pairs.items() if times == usual[cell] and after != cell}
        broken = self.rows - 1 - sum(usual.values())
        return len(following) >= len(self.cells) and broken * 100 <= MAX_LOST_PERCENT * self.rows


def _role(word: str, seen: _Seen) -> str | None:
    """Return the role of a key column, GPU or NAME; None if the column is not a key."""
    keys = {cell for cell in seen.cells if cell}
    if all(gpu_number(cell) is not None for cell in keys - {"-"}):
        if word in _INDICES:
            return GPU if 0 < len(keys) <= MAX_GPUS else None
        if word in _NAMING and not any(cell.isdigit() for cell in keys):
            return GPU if 1 < len(keys) <= MAX_GPUS else None
        return (_TURNING.get(word) or NAME) if seen.turns else None
    if word == _ANY:
        is_label = all(cell[0].isalpha() and cell.lower() not in (*STATES, *NOT_NUMBERS) for cell in seen.cells if cell)
        return NAME if is_label and "" not in seen.cells and seen.turns else None
    is_words = not any(re.fullmatch(r"[-+.,0-9eE]+", cell) for cell in keys)
    return NAME if word in _NAMING and is_words and 1 < len(keys) <= MAX_NAMES else None


@dataclass
class KeyColumnEvidence:
    """Collects evidence of key columns from all rows of a file; ``said`` are those that the user names."""

    said: Mapping[int, str] = field(default_factory=dict)
    _words: dict[int, str] = field(default_factory=dict)
    _seen: dict[int, _Seen] = field(default_factory=dict)

    def begin(self, words: Mapping[int, str], said: Mapping[int, str], cells: Sequence[str]) -> None:
        """Start a table whose first row has these ``cells``."""
        self.said = said
        self._words = {
            place: word
            for place, word in words.items()
            if place not in said and (word != _ANY or (cells[place] and not is_numeric(cells[place])))
        }
        self._seen = {place: _Seen() for place in self._words}

    def add(self, cells: Sequence[str]) -> None:
        """Add a row."""
        for place, seen in self._seen.items():
            seen.add(cells[place])

    @property
    def watched(self) -> list[int]:
        """The columns that are still examined."""
        return [place for place, seen in self._seen.items() if len(seen.cells) <= MAX_NAMES]

    def add_block(self, texts: Mapping[int, Texts]) -> None:
        """Add many rows by the texts of the examined columns."""
        for place in self.watched:
            self._seen[place].add_block(texts[place])

    def decide(self) -> "RowKeys":
        """Return the key columns."""
        roles = {place: role for place, seen in self._seen.items() if (role := _role(self._words[place], seen))}
        # Beside an index of a GPU, the model of each board repeats in the same order.
        named = {place: role for place, role in roles.items() if self._words[place] != _ANY}
        return RowKeys({**(named or ({} if self.said else roles)), **self.said})


@dataclass
class RowKeys:
    """Maps each row to the channels of its GPU or sensor; ``roles`` are those of the key columns, by place."""

    roles: Mapping[int, str]
    _first: dict[tuple[str, ...], int] = field(default_factory=dict)

    def owners(self, cells: Sequence[str], plain: Sequence[Channel], every: list[Channel]) -> range | None:
        """Return the places of the channels of a row in ``every``, to which channels of a new key are added.

        ``plain`` are the channels of a row without its key.
        """
        if not self.roles:
            return None
        first = self._place(tuple(cells[place] for place in self.roles), plain, every)
        return range(first, first + len(plain))

    def owners_of(
        self, texts: Mapping[int, Texts], plain: Sequence[Channel], every: list[Channel]
    ) -> Callable[[], Int64s]:
        """Return a function for the place in ``every`` of the first channel of each row of a block."""

        def firsts() -> Int64s:
            columns = [texts[place] for place in self.roles]
            which, rows = code_combinations([(len(one.distinct), one.codes) for one in columns])
            keys = [tuple(one.distinct[one.codes[row]] for one in columns) for row in rows.tolist()]
            return np.array([self._place(key, plain, every) for key in keys], np.int64)[which]

        return firsts

    def _place(self, key: tuple[str, ...], plain: Sequence[Channel], every: list[Channel]) -> int:
        first = self._first.get(key)
        if first is None:
            first = self._first[key] = len(every)
            every += [self._channel(one, key) for one in plain]
            if len(every) > MAX_SENSORS:
                raise BrokenInputError(
                    f"{len(self._first)} different {', '.join(self.roles.values())}s with {len(plain)} columns of "
                    f"readings each are more than {MAX_SENSORS} sensors, the maximum; check the file"
                )
        return first

    def _channel(self, one: Channel, key: tuple[str, ...]) -> Channel:
        for role, cell in zip(self.roles.values(), key, strict=True):
            gpu = gpu_number(cell) if role == GPU else None
            # A key that is not an index becomes part of the name.
            one = replace(one, gpu=gpu) if gpu is not None else replace(one, name=f"{cell} {one.name}".strip())
        return one
