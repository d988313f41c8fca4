"""Write the sensors of an upload and their samples, which are the longest table of all."""

from collections import Counter
from typing import Any

import pandas as pd
from sqlalchemy import Connection, text

from profsvc.errors import DomainError, InputError
from profsvc.store.bulk import insert_rows, values
from profsvc.store.schema import STEP

PLAIN = ("quantity", "name", "unit", "gpu_index", "device", "x_mm", "y_mm", "quality", "line")
MOST_NS = float(2**63)


class Sensors:
    """The sensors of one upload: a reader may name them before their samples or after.

    A sample keeps ``elapsed_ns`` and by how much each clock differs from its origin plus ``elapsed_ns``. The origin is
    chosen so that the first reading with that clock differs by 0, and so do all others of a file whose times agree.
    """

    def __init__(self, connection: Connection, first: int) -> None:
        """Begin an upload whose sensors are numbered from ``first`` + 1."""
        self.connection = connection
        self.first = first
        self.known: set[int] = set()
        self.samples: Counter[int] = Counter()
        self.origins: dict[str, int] = {}

    def write_sensors(self, table: pd.DataFrame) -> None:
        """Write a tidy table of sensors."""
        indexes = values(table["sensor_index"])
        if max(indexes) > STEP - 2:
            raise InputError(f"sensor {max(indexes)}: a file may have {STEP - 1:,} sensors; split it")
        self.known.update(indexes)
        columns: dict[str, Any] = {"sensor_id": [self.first + index + 1 for index in indexes]}
        columns |= {name: values(table[name]) for name in PLAIN}
        columns["samples"] = [0] * len(table)
        insert_rows(self.connection, "sensors", list(columns), zip(*columns.values(), strict=True))

    def write_samples(self, table: pd.DataFrame, reasons: list[int | None]) -> None:
        """Write a tidy table of samples, with the number of each reason."""
        for index, count in table["sensor_index"].value_counts().items():
            self.samples[int(str(index))] += int(count)
        columns = {
            "sensor_id": values(table["sensor_index"] + (self.first + 1)),
            "sample_index": values(table["sample_index"]),
            "elapsed_ns": values(table["elapsed_ns"]),
            "time_shift_ns": self._shift(table, "time"),
            "local_shift_ns": self._shift(table, "local"),
            "value": values(table["value"]),
            "reason_id": reasons,
            "line": values(table["line"]),
        }
        insert_rows(self.connection, "samples", list(columns), zip(*columns.values(), strict=True))

    def _shift(self, table: pd.DataFrame, clock: str) -> list[int | None]:
        """Return what a clock shows beyond its origin and ``elapsed_ns``, where it shows anything."""
        shown = table[f"{clock}_ns"]
        if shown.isna().all():
            return [None] * len(table)
        elapsed = table["elapsed_ns"].fillna(0)
        first = int(shown.notna().argmax())
        origin = self.origins.setdefault(clock, int(shown.iloc[first]) - int(elapsed.iloc[first]))
        # 64 bits run over only where a file holds times that lie three centuries apart.
        rough = float(origin) + elapsed.astype("float64")
        far = (rough.abs() >= MOST_NS) | ((shown.astype("float64") - rough).abs() >= MOST_NS)
        if abs(origin) >= MOST_NS or far.any():
            line = table["line"].iloc[int(far.argmax())]
            raise InputError(f"line {line}: its time lies more than 292 years from that of other lines; correct it")
        return values(shown - (elapsed + origin))

    def finish(self) -> None:
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
        self.connection.execute(query, rows)
