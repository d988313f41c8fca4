"""How to read a file, as far as the user says it, and how it was read, as it is kept with the upload."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from profsvc import analysis, formats
from profsvc.errors import UsageError
from profsvc.specs.files.formats import TIMESERIES

# The fact that keeps an option, and the option.
OPTION_OF_FACT = {
    "timezone": "--timezone", "clock_offset_s": "--clock-offset", "columns": "--column", "positions": "--position",
}  # fmt: skip
MAX_OFFSET_S = 1e9
"""About 32 years: a clock that was never set begins in 1970 or later."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file, as far as the user says.

    Reader, zone of its clock, seconds that this clock was ahead, what its columns are (NAME=QUANTITY:UNIT), and where
    its channels sit on the die (CHANNEL=X,Y in mm); and how many bytes it may have when decompressed.
    """

    form: str | None = None
    zone: str | None = None
    offset_s: float = 0.0
    columns: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant before any file is read."""
        if self.zone is not None:
            analysis.time_zone(self.zone)
        if not abs(self.offset_s) <= MAX_OFFSET_S:
            raise UsageError(
                f"a clock offset of {self.offset_s:g} s is not possible; give seconds from -{MAX_OFFSET_S:g} to "
                f"{MAX_OFFSET_S:g}"
            )
        if self.columns:
            formats.read_columns(self.columns)
        if self.positions:
            formats.read_positions(self.positions)
        if self.columns and self.form not in (None, TIMESERIES):
            raise UsageError(
                f"--column names the columns of a log, but {self.form} defines its own; omit one of the two"
            )

    def said(self) -> dict[str, str]:
        """Return the options to store with the upload, so that it can be read the same way again."""
        said = {
            "timezone": self.zone or "",
            "clock_offset_s": repr(self.offset_s).removesuffix(".0") if self.offset_s else "",
            "columns": shlex.join(self.columns),
            "positions": shlex.join(self.positions),
            "reader": self.form or "",
        }
        return {name: value for name, value in said.items() if value}

    @classmethod
    def as_said(cls, facts: Mapping[str, str]) -> "ReadOptions":
        """Return how a stored file was read, from what is kept with it; its format only where the user named it."""
        return cls(
            facts.get("reader"),
            facts.get("timezone"),
            float(facts.get("clock_offset_s", "0")),
            tuple(shlex.split(facts.get("columns", ""))),
            tuple(shlex.split(facts.get("positions", ""))),
        )


DEFAULT_OPTIONS = ReadOptions()
