"""Write the sensors of an upload and their samples, which are the longest table of all."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import Connection, text

from profsvc.errors import DomainError, InputError
from profsvc.store.bulk import values
from profsvc.store.names import refuse_nul
from profsvc.store.schema import STEP
from profsvc.store.staging import Sink

PLAIN = ("quantity", "name", "unit", "gpu_index", "device", "x_mm", "y_mm", "quality", "line")
MOST_NS = float(2**63)
Ints = npt.NDArray[np.int64]


class Sensors:
    """The sensors of one upload: a reader may name them before their samples or after.

    A sample keeps ``elapsed_ns`` and by how much each clock differs from its origin plus ``elapsed_ns``. The origin is
    chosen so that the first reading with that clock differs by 0, and so do all others of a file whose times agree.
    """

    def __init__(self, sink: Sink, first: int) -> None:
        """Begin an upload whose sensors and samples are numbered from ``first`` + 1."""
        self.sink = sink
        self.first = first
        self.known: set[int] = set()
        self.samples: Counter[int] = Counter()
        self.last_index: dict[int, int] = {}
        self.origins: dict[str, int] = {}

    def write_sensors(self, table: pd.DataFrame) -> None:
        """Write a tidy table of sensors."""
        indexes = values(table["sensor_index"])
        if max(indexes) > STEP - 2:
            raise InputError(f"sensor {max(indexes)}: a file may have {STEP - 1:,} sensors; split it")
        refuse_nul(text for name in ("quantity", "name", "unit", "device", "quality") for text in table[name].dropna())
        self.known.update(indexes)
        columns: dict[str, Any] = {"sensor_id": [self.first + index + 1 for index in indexes]}
        columns |= {name: table[name] for name in PLAIN}
        columns["samples"] = [0] * len(table)
        self.sink.write("sensors", columns)

    def write_samples(self, table: pd.DataFrame, reasons: pd.arrays.IntegerArray) -> None:
        """Write a tidy table of samples, sensor by sensor, with the number of each reason."""
        begin = self.first + self.samples.total() + 1
        if begin + len(table) > self.first + STEP:
            raise InputError(f"a file may have {STEP - 1:,} samples; split it")
        shifts = {f"{clock}_shift_ns": self._shift(table, clock) for clock in ("time", "local")}
        frame = table[["elapsed_ns", "value"]].assign(reason_id=reasons, **shifts)
        sensors = table["sensor_index"].to_numpy(np.int64)
        counting = {name: table[name].to_numpy(np.int64) for name in ("sample_index", "line")}
        if (np.diff(sensors) < 0).any():
            order = np.argsort(sensors, kind="stable")
            sensors, frame = sensors[order], frame.iloc[order]
            counting = {name: column[order] for name, column in counting.items()}
        heads = np.flatnonzero(np.diff(sensors, prepend=sensors[0] - 1))
        sizes = np.diff(heads, append=len(sensors))
        self._count(sensors, heads, sizes, counting["sample_index"])
        in_block = np.arange(len(sensors)) - np.repeat(heads, sizes)
        columns: dict[str, Any] = {
            "sample_id": np.arange(begin, begin + len(sensors)),
            **{str(name): frame[name] for name in frame},
        }
        block = {"sensor_id": sensors[heads] + (self.first + 1), "first_id": begin + heads}
        block["last_id"] = block["first_id"] + sizes - 1
        for name, short in (("sample_index", "index"), ("line", "line")):
            block[f"first_{short}"] = counting[name][heads]
            columns[f"{short}_shift"] = counting[name] - np.repeat(counting[name][heads], sizes) - in_block
        self.sink.write("samples", columns)
        self.sink.write("sample_blocks", block)

    def _count(self, sensors: Ints, heads: Ints, sizes: Ints, indexes: Ints) -> None:
        """Count the samples of each sensor; refuse a reading that comes twice, or before one that it follows."""
        falls = np.diff(indexes) <= 0
        falls[heads[1:] - 1] = False
        if falls.any():
            row = int(falls.argmax()) + 1
            raise DomainError(f"the reader gives sample {indexes[row]} of sensor {sensors[row]} after a later one")
        for head, size in zip(heads.tolist(), sizes.tolist(), strict=True):
            sensor = int(sensors[head])
            if indexes[head] <= self.last_index.get(sensor, -1):
                raise DomainError(f"the reader gives sample {indexes[head]} of sensor {sensor} after a later one")
            self.last_index[sensor] = int(indexes[head + size - 1])
            self.samples[sensor] += size

    def _shift(self, table: pd.DataFrame, clock: str) -> "pd.Series[Any]":
        """Return what a clock shows beyond its origin and ``elapsed_ns``, where it shows anything."""
        shown = table[f"{clock}_ns"]
        if shown.isna().all():
            return shown
        elapsed = table["elapsed_ns"].fillna(0)
        first = int(shown.notna().argmax())
        origin = self.origins.setdefault(clock, int(shown.iloc[first]) - int(elapsed.iloc[first]))
        # 64 bits run over only where a file holds times that lie three centuries apart.
        rough = float(origin) + elapsed.astype("float64")
        far = (rough.abs() >= MOST_NS) | ((shown.astype("float64") - rough).abs() >= MOST_NS)
        if abs(origin) >= MOST_NS or far.any():
            line = table["line"].iloc[int(far.argmax())]
            raise InputError(f"line {line}: its time lies more than 292 years from that of other lines; correct it")
        return shown - (elapsed + origin)

    def finish(self, connection: Connection) -> None:
        """Write what is known only at the end, and refuse samples of sensors that the file does not have."""
        if lost := self.samples.keys() - self.known:
            raise DomainError(f"the reader gives samples of sensor {min(lost)}, but no such sensor")
        if not self.known:
            return
        query = text(
            "UPDATE sensors SET samples = :samples, time_origin_ns = :time, local_origin_ns = :local"
            " WHERE sensor_id = :sensor"
        )
        origins = {clock: self.origins.get(clock) for clock in ("time", "local")}
        rows = [
            {"sensor": self.first + index + 1, "samples": self.samples[index], **origins}
            for index in sorted(self.known)
        ]
        connection.execute(query, rows)
