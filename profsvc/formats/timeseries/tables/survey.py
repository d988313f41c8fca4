"""The first pass over a table of a meter: number format, date order, numeric columns and key columns."""

import re
from dataclasses import dataclass, field

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.numbers import NOT_NUMBERS, Evidence
from profsvc.formats.parsing.records import REJECT, ROW, Record
from profsvc.formats.parsing.text import Text
from profsvc.formats.timeseries.cell_units import CellUnits
from profsvc.formats.timeseries.columns import STATES
from profsvc.formats.timeseries.dates import DateOrderEvidence
from profsvc.formats.timeseries.labels import MAX_LABEL_CHARS
from profsvc.formats.timeseries.readings import NUMBER_FORMAT_HINT
from profsvc.formats.timeseries.tables.blocks import BlockPlan, TableBlock
from profsvc.formats.timeseries.tables.lines import Layout, TableFormat, records, split_row
from profsvc.formats.timeseries.tables.multiplexed import KeyColumnEvidence
from profsvc.formats.timeseries.tables.time_columns import is_numeric

DATE_ORDER_HINT = ", or give the order with --column 'NAME=time:dmy' or 'NAME=time:mdy', where NAME is the date column"
# Shapes of cells that prove the decimal separator; further cells with that separator, or none, add no evidence.
_SHOWN = {"decimal_dot": ".", "decimal_comma": ","}
MAX_WORDS = 3
_NAMED_STATES = re.compile(r".*[\[(]\s*([^\W\d_]+)\s*/\s*([^\W\d_]+)\s*[\])]\s*")
# Cells without evidence: whole numbers, and ambiguous cells like earlier ones.
_WHOLE = r"^ *-?[0-9]+ *$|^$"
_MAYBE = r"^ *-?(?:[0-9]+|[1-9][0-9]{0,2}\.[0-9]{3}) *$|^$"


@dataclass
class Survey:
    """The results of the first pass over a file."""

    evidence: Evidence = field(default_factory=lambda: Evidence(advice=NUMBER_FORMAT_HINT))
    dates: DateOrderEvidence = field(default_factory=lambda: DateOrderEvidence(advice=DATE_ORDER_HINT))
    layout: Layout | None = None
    first: str | None = None
    first_line: int = 0
    numeric: set[int] = field(default_factory=set)
    turns: KeyColumnEvidence = field(default_factory=KeyColumnEvidence)
    units: CellUnits = field(default_factory=CellUnits)
    words: dict[int, set[str]] = field(default_factory=dict)
    has_header: bool = False
    has_point: bool = False
    wide: int = 0

    def reject(self, record: Record, layout: Layout) -> None:
        """Note a row of numbers with more cells than the header: its commas may mark decimals."""
        cells = split_row(record.text, layout.sign)
        readings = [cell for place, cell in enumerate(cells) if cell and place not in layout.times.places]
        if layout.sign == "," and len(cells) > len(layout.header) and readings and all(map(is_numeric, readings)):
            self.wide = self.wide or record.line

    def add(self, record: Record, layout: Layout) -> None:
        """Add a row."""
        if self.layout is None:
            self.turns.begin(layout.turns, layout.told, record.cells)
        self.layout = layout
        cells = record.cells
        self.turns.add(cells)
        self.has_point = self.has_point or any("." in cell for cell in cells)
        readings = [self._reading(place, cells[place]) for place in layout.places]
        self.evidence.add([cell for cell in readings if not cell.isdigit()], record.line)
        text = layout.times.text(cells)
        self.dates.add(text, record.line)
        if self.first is None and text:
            self.first, self.first_line = text, record.line

    def _reading(self, place: int, cell: str) -> str:
        if not is_numeric(cell):
            self._see_word(place, cell.lower())
            return self.units.see(place, cell)
        self.numeric.add(place)
        return cell

    def _see_word(self, place: int, word: str) -> None:
        """Note the first texts of a column; more than two are no states."""
        known = self.words.setdefault(place, set())
        if len(known) < MAX_WORDS and word not in NOT_NUMBERS:
            known.add(word)

    def states(self, place: int) -> dict[str, str]:
        """Return the texts of a column of states as 1 or 0; none if it has others.

        The header may say which is which, as in "Throttling [Yes/No]", in any language.
        """
        words = self.words.get(place, set())
        label = self.layout.header[place] if self.layout else ""
        named = _NAMED_STATES.fullmatch(label) if len(label) <= MAX_LABEL_CHARS else None
        pair = {named[1].lower(): "1", named[2].lower(): "0"} if named else {}
        for known in (pair, {word: f"{value:.0f}" for word, value in STATES.items()}):
            if words and words <= known.keys() and place not in self.numeric:
                return known
        return {}

    def take(self, block: bytes, part: TableBlock, line: int, layout: Layout) -> int:
        """Return the number of rows of a block without new evidence of separators."""
        self.has_point = self.has_point or b"." in block
        for text, row in zip(part.dated.stamps, part.dated.rows.tolist(), strict=True) if part.dated else ():
            self.dates.add(text, line + row)
        self._see(part, line, layout)
        self.turns.add_block(part.texts)
        return part.rows

    def _see(self, part: TableBlock, line: int, layout: Layout) -> None:
        """Add each distinct text of a block with the row in which it occurs first."""
        places = {place: n for n, place in enumerate(layout.places)}
        for row, place, text in sorted(
            (row, place, text)
            for place, texts in part.texts.items()
            if place in places
            for text, row in zip(texts.distinct, texts.first.tolist(), strict=True)
        ):
            reading = self._reading(place, text)
            self.evidence.add([] if reading.isdigit() else [reading], line + row)

    def plan(self, layout: Layout, has_notes: bool) -> BlockPlan | None:
        """Return how the next blocks are parsed; None if rows must be parsed one by one."""
        times = layout.times
        if self.first is None or times.fraction is not None:
            return None
        texts = {*self.turns.watched, *(place for place in layout.places if place not in self.numeric)} - {
            *times.places
        }
        numbers = tuple(place for place in layout.places if place not in texts)
        signs = [sign for name, sign in _SHOWN.items() if name in self.evidence.found]
        if len(signs) > 1 or (has_notes and len(times.places) + len(numbers) < len(layout.header)):
            return None
        undecided = None if signs else _MAYBE if "maybe_dot" in self.evidence.found else _WHOLE
        is_count = is_numeric(self.first)
        return BlockPlan(
            *(layout.sign, layout.width, times.places, is_count, numbers, tuple(sorted(texts))),
            *("".join(signs) or ".", undecided, layout.spare),
        )

    def order(self) -> str:
        """Return the order of the date fields, as the user or the dates give it."""
        said = self.layout.times.order if self.layout else None
        return self.dates.agree(said) if said else self.dates.decide()


def survey_of(text: Text, style: TableFormat) -> Survey:
    """Make the first pass over a file; refuse a file that cannot be read."""
    survey = Survey()

    def plan(layout: Layout) -> BlockPlan | None:
        return survey.plan(layout, style.is_note is not None)

    for record, layout in records(text, style, plan, survey.take):
        survey.has_header |= layout is not None
        if isinstance(record, int):
            continue
        if record.kind == ROW and layout is not None:
            survey.add(record, layout)
        elif record.kind == REJECT and layout is not None:
            survey.reject(record, layout)
    if survey.wide and not survey.has_point:
        raise BrokenInputError(
            f"line {survey.wide} has more numbers than the header has columns, and no number of the file has a decimal "
            f"point, as if commas marked decimals; {NUMBER_FORMAT_HINT}"
        )
    if style.refusal is not None and not survey.has_header:
        raise BrokenInputError(style.refusal())
    return survey
