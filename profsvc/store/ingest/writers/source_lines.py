"""Write the rows of source pages: numbers as they are, and every text of a file once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from profsvc.errors import InputError
from profsvc.store.ingest.inserts.column_values import factorize, values
from profsvc.store.ingest.inserts.row_insert import reject_nul
from profsvc.store.ingest.staging import Sink
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.contents.source import COUNTS, KIND_BITS, TEXT_COLUMNS
from profsvc.tables.on_demand import pd

MAX_CACHED_TEXTS = 50_000


class SourceLines:
    """Writes the tables of source pages of one upload; ``numbers`` gives the numbers of names in a dictionary."""

    def __init__(self, sink: Sink, first: int, numbers: Callable[[str, Any], Any]) -> None:
        """Begin an upload whose row ids follow ``first``."""
        self.sink, self.first, self.numbers = sink, first, numbers
        self.texts: dict[str, int] = {}
        self.text_count = 0

    def write_kernels(self, table: pd.DataFrame) -> None:
        """Write the profiled launches; which launches of the run they are is found when the file is complete."""
        columns = {
            "source_id": self._ids(table["source_index"]),
            "kernel_id": self.numbers("kernels", table["kernel"]),
            "launch_index": table["launch_index"],
            **{name: [0] * len(table) for name in ("repeats", "kinds", "row_count")},
            "line": table["line"],
        }
        self.sink.write("source_kernels", columns)

    def write_lines(self, table: pd.DataFrame) -> None:
        """Write lines and instructions."""
        columns = {
            "line_id": self._ids(table["line_index"]),
            "source_id": self._ids(table["source_index"]),
            "kind": [KIND_BITS[kind] for kind in table["kind"]],
            **{name: table[name] for name in ("source_line", "address", "repeated")},
            **{f"{name}_id": self._text_ids(table[name]) for name in TEXT_COLUMNS},
            **{name: table[name] for name in (*COUNTS, "line")},
        }
        self.sink.write("source_lines", columns)

    def write_stalls(self, table: pd.DataFrame) -> None:
        """Write samples per stall reason."""
        columns = {
            "line_id": self._ids(table["line_index"]),
            "reason_id": self.numbers("texts", table["reason"]),
            **{name: table[name] for name in ("samples", "samples_not_issued")},
        }
        self.sink.write("source_stalls", columns)

    def _ids(self, ordinals: pd.Series[Any]) -> list[int]:
        found = [self.first + ordinal + 1 for ordinal in values(ordinals)]
        if found and max(found) >= self.first + IDS_PER_UPLOAD:
            raise InputError(f"a file may have {IDS_PER_UPLOAD - 1:,} source lines and instructions; split it")
        return found

    def _text_ids(self, column: pd.Series[Any]) -> list[int | None]:
        codes, distinct = factorize(column)
        reject_nul(distinct)
        self._add(text for text in distinct if text not in self.texts)
        numbers = [self.texts[text] for text in distinct]
        if len(self.texts) > MAX_CACHED_TEXTS:  # texts of later rows may be stored again
            self.texts.clear()
        return [None if code < 0 else numbers[code] for code in codes.tolist()]

    def _add(self, texts: Iterable[str]) -> None:
        new = list(dict.fromkeys(texts))
        if not new:
            return
        begin = self.first + self.text_count + 1
        self.text_count += len(new)
        self.texts.update(zip(new, range(begin, begin + len(new)), strict=True))
        self.sink.write("source_texts", {"text_id": range(begin, begin + len(new)), "text": new})
