"""What the readers of meters and sensors share: channels with units, and their readings as tidy tables."""

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.errors import BrokenInputError
from profsvc.formats.channels import Channel as Sensor
from profsvc.formats.channels import Readings, Sensors
from profsvc.formats.meter_clock import ELAPSED, Stamp
from profsvc.formats.numbers import NOT_NUMBERS, Numbers
from profsvc.formats.sensors import Column
from profsvc.specs import Unit, units

TOOL = "meter"
UNKNOWN, OTHER = "unknown", "other"
BATCH_READINGS = 60_000
ADVICE = "export again with a decimal point and no thousands"
TEXT_SHOWN = 40
# To look for the unit in a label takes the square of its length, and to sort readings that of the columns.
LONGEST_LABEL, MOST_CHANNELS = 500, 2_000
ABSOLUTE_ZERO = -273.15
# SCPI instruments print 9.91E+37 for "not a number" and 9.9E+37 for "beyond the range"; Hioki prints E+99.
SENTINEL = 9.9e36
NO_DATA = 9.91e37
# No thermocouple reaches higher than type C (tungsten-rhenium, IEC 60584-1): beyond it the wire is broken.
HOTTEST = 2320.0
# What loggers print where a wire is broken, or where a value leaves the range.
_OPEN = {"open", "opentc", "opencircuit", "oc", "burnout", "tcopen", "sensoropen", "nosensor", "nc"}
_BEYOND = {"ol", "over", "overload", "overrange", "outofrange", "under", "underrange", "hi", "lo"}
# Their zero is not that of degC.
SHIFTS = {"degF": -32.0, "F": -32.0, "fahrenheit": -32.0, "K": ABSOLUTE_ZERO, "degK": ABSOLUTE_ZERO, "kelvin": -273.15}
AS_PRINTED = "values are as printed"
NO_UNIT = f"the file names no unit: {AS_PRINTED}"

_BRACKETS = re.compile(r"(.*?)\s*[(\[]\s*([^()\[\]]*?)\s*[)\]]\s*", re.DOTALL)
# Power (mW) avg, power_usage (W)/mean, GPU Pwr(W) (API)
_INSIDE = re.compile(
    r"(.+?)[(\[]\s*([^()\[\]]+?)\s*[)\]][\s/_-]*(\(?(?:mean|avg|average|min|max|last|rms|total|API|PCAT)\)?)"
)
# Temp, °C (LGR S/N: 1234)
_AFTER_COMMA = re.compile(r"([^,]+), ([^,() ]{1,9})(?: \(.*\))?")
# Power/W and Power mW, but not Current A, which may be a phase.
_AFTER_SIGN = re.compile(r"([^/:]*[^/:\s])(?:\s*[/:]\s*|\s+(?=\S\S|[^\x00-\x7f]))([^\s/:]{1,9})")
_DEGREES = re.compile(
    r"^(?:[\u00b0\u00ba\u02da\ufffd]|\u00c2\u00b0|\u00a1\u00e3|[Dd]eg[. ]*|[Dd]egrees? )\s*(?=[CFK]$)"
)
_JOINED = re.compile("[\u2103\u2109\u3380-\u33df]")
# The degree sign joined to its C, in GBK and read as Latin-1.
GBK_CELSIUS = "\u00a1\u00e6"
_PARTS = re.compile(r"[kMG]Hz|[kM]?Wh|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_MICRO = re.compile("^[\u00b5\u03bc]")
_SUFFIXES = {"w": "W", "kw": "kW", "mw": "mW", "uw": "uW", "v": "V", "mv": "mV", "a": "A", "ma": "mA", "ua": "uA"}
_SUFFIXES |= {"j": "J", "mj": "mJ", "uj": "uJ", "kj": "kJ", "wh": "Wh", "kwh": "kWh", "c": "degC", "degc": "degC"}
_SUFFIXES |= {"f": "degF", "degf": "degF", "k": "K", "hz": "Hz", "s": "s", "ms": "ms", "us": "us", "ns": "ns"}
_STEMS = {
    "power": ("power", "watt", "pwr", "consum", "draw", "leistung", "verbrauch", "puissance", "potencia"),
    "energy": ("energ", "consum", "verbrauch"),
    "voltage": ("volt", "spannung", "tension"),
    "current": ("curr", "amp", "strom"),
    "memory": ("mem", "ram", "alloc"),
    "temperature": ("temp", "thermo"),
    "frequency": ("freq",),
    "time": ("time", "elapsed", "epoch"),
}
# Letters that stand for quantities, as in U1/V.
_SYMBOLS = {"P": "power", "U": "voltage", "I": "current", "T": "temperature", "E": "energy"}
_SYMBOL = re.compile(r"[PUITE](?:[0-9]{1,3}|rms|avg|mean|max|min|tot|sum)?")
# Units that are the last word of a name, whatever stands before: n1_watts, PkgWatt, clock_mhz, util_percent.
_LAST = {"watt", "watts", "volt", "volts", "amp", "amps", "joule", "joules", "celsius", "fahrenheit", "percent", "pct"}
_LAST |= {"mhz", "ghz", "kwh", "wh"}
_SPELLED = {"mhz": "MHz", "ghz": "GHz", "kwh": "kWh", "wh": "Wh", "percent": "%", "pct": "%"}
# Units that nothing else is written as, whatever stands before: VDD_IN_mW.
_PRINTED = {"mW", "kW", "mWh", "kWh", "Wh", "mJ", "kJ", "mA", "uA", "mV", "kV", "degC", "degF"}
# Before a unit they make another of it: tokens per joule, kilo watts.
_NOT_BEFORE = {"per", "milli", "micro", "nano", "kilo", "mega", "giga", "m", "k", "u", "n"}
_LIMITS = {"limit", "cap", "tdp"}
# Column names that are units themselves; a lone letter is one only where it cannot be the name of a sensor.
_WORDS = {"watt", "watts", "volt", "volts", "amp", "amps", "joule", "joules", "pf", "powerfactor", "costheta", "cosphi"}
_LETTERS = {"W", "V", "VA", "Wh", "WH", "kWh", "KWH", "mW", "mV", "mA", "kW", "Hz", "VAR", "PF"}


@dataclass(frozen=True)
class Channel:
    """A column of readings: ``(printed + shift) * factor`` is in ``unit``."""

    name: str
    quantity: str = UNKNOWN
    unit: str = UNKNOWN
    factor: float = 1.0
    shift: float = 0.0
    note: str = ""
    gpu: int | None = None


def unit_of(token: str) -> Unit | None:
    """Return the unit that a meter prints as ``token``; None if we do not know it.

    >>> unit_of("Watt-Hour").factor, unit_of("\u2103").si_unit, unit_of("g")
    (3600.0, 'degC', None)
    """
    # East Asian programs print units as one letter, such as a degree sign joined to its C.
    token = _JOINED.sub(lambda sign: unicodedata.normalize("NFKC", sign[0]), token.replace(GBK_CELSIUS, "\u2103"))
    token = _MICRO.sub("u", _DEGREES.sub("deg", token.strip()))
    known = units(TOOL)
    # Case carries the prefix of a symbol (mW, MW), but not of a word.
    return known.get(token) or (known.get(token.lower()) if len(token) > 3 else None)


def _words(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def split_label(label: str) -> tuple[str, str | None]:
    """Split a column's label into its name and the unit it names.

    >>> split_label("Main Avg Power (mW)"), split_label("power_w"), split_label("Watts"), split_label("T5")
    (('Main Avg Power', 'mW'), ('power_w', 'W'), ('Watts', 'watts'), ('T5', None))
    >>> split_label("Power/W"), split_label("Perf/W"), split_label("Current A"), split_label("Power (W)/mean")
    (('Power', 'W'), ('Perf/W', None), ('Current A', None), ('Power mean', 'W'))
    """
    label = label.strip()
    match = _BRACKETS.fullmatch(label) if len(label) <= LONGEST_LABEL else None
    if match and unit_of(match[2]):
        return (match[1] or label), match[2]
    inside = _INSIDE.fullmatch(label) if len(label) <= LONGEST_LABEL else None
    if inside and unit_of(inside[2]):
        return f"{inside[1].strip()} {inside[3]}", inside[2]
    comma = _AFTER_COMMA.fullmatch(label) if len(label) <= LONGEST_LABEL else None
    if comma and unit_of(comma[2]):
        return comma[1], comma[2]
    after = _AFTER_SIGN.fullmatch(label) if len(label) <= LONGEST_LABEL else None
    if after and (unit := unit_of(after[2])) and (_is_of(after[1], unit) or _is_symbol(after[1], unit)):
        return after[1], after[2]
    stem, _, suffix = label.rpartition("_")
    if stem and suffix in _PRINTED:
        return label, suffix
    unit = unit_of(_SUFFIXES.get(suffix.lower(), "")) if stem else None
    if unit and _is_of(stem, unit):
        return label, unit.token
    parts = [part.lower() for part in _PARTS.findall(label)] if len(label) <= LONGEST_LABEL else []
    if len(parts) > 1 and parts[-1] in _LAST and parts[-2] not in _NOT_BEFORE and "/" not in label:
        return label, _SPELLED.get(parts[-1], parts[-1])
    if label in _LETTERS or _words(label) in _WORDS:
        words = _words(label)
        return label, "pf" if words in (
            "pf",
            "powerfactor",
            "costheta",
            "cosphi",
        ) else label if label in _LETTERS else words
    return label, None


def _is_of(name: str, unit: Unit) -> bool:
    """Tell whether a name says what its unit measures."""
    return any(word in name.lower() for word in _STEMS.get(unit.dimension, ()))


def _is_symbol(name: str, unit: Unit) -> bool:
    """Tell whether a name is the letter of what its unit measures."""
    return _SYMBOL.fullmatch(name) is not None and _SYMBOLS[name[0]] == unit.dimension


def channel(name: str, printed: str | None) -> Channel:
    """Return the channel called ``name`` whose values are in the unit ``printed``.

    >>> channel("T1", "\u00b0F")
    Channel(name='T1', quantity='temperature', unit='degC', factor=0.5555555555555556, shift=-32.0, note='', gpu=None)
    """
    if not printed or not printed.strip():
        return Channel(name, note=NO_UNIT)
    if printed.strip() == "C" and "charge" in name.lower():
        return Channel(name, "charge", "C")
    unit = unit_of(printed)
    if unit is None:
        return Channel(name, OTHER, printed.strip())
    quantity = "humidity" if unit.dimension == "fraction" and "humid" in name.lower() else unit.dimension
    return Channel(name, quantity, unit.si_unit, unit.factor, SHIFTS.get(unit.token, 0.0))


def labelled(label: str) -> Channel:
    """Return the channel of a column from its label alone."""
    one = channel(*split_label(label))
    if one.unit == UNKNOWN and len(label) <= LONGEST_LABEL and (found := _BRACKETS.fullmatch(label.strip())):
        one = replace(one, note=f"its unit {found[2][:TEXT_SHOWN]!r} is not known: {AS_PRINTED}") if found[2] else one
    is_limit = (
        one.unit != UNKNOWN and len(label) <= LONGEST_LABEL and _LIMITS & {*map(str.lower, _PARTS.findall(label))}
    )
    return replace(one, quantity="limit") if is_limit else one


def settled(
    read: NDArray[np.float64],
    factors: NDArray[np.float64],
    shifts: NDArray[np.float64],
    celsius: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the values of printed numbers in the units of their channels, and which of them cannot be."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = read + shifts
        # A power of ten below 1 has no exact double, but its inverse has.
        values = np.where(factors < 1, shifted / np.where(factors < 1, 1 / factors, 1), shifted * factors)
        wrong = celsius & ((values < ABSOLUTE_ZERO - 1e-6) | (values > HOTTEST + 1e-6))
        return values, ~np.isfinite(values) | (np.abs(read) >= SENTINEL) | wrong


def reason_of(value: float, printed: str) -> str:
    """Say why a number as it was printed is no value.

    >>> reason_of(9.91e37, "9.91E+37"), reason_of(-300.0, "-300"), reason_of(float("inf"), "Inf")
    ('no data (9.91E+37)', 'below absolute zero', 'inf')
    """
    if value != value or abs(value) == math.inf:
        return "nan" if value != value else "inf"
    if abs(value) < SENTINEL:
        return "below absolute zero" if value < 0 else f"open sensor: {printed} is beyond any thermocouple"
    is_no_data = abs(abs(value) / NO_DATA - 1) < 1e-6
    return f"no data ({printed})" if is_no_data else f"beyond the range ({printed})"


def _reason(cell: str, value: float, numbers: Numbers) -> str:
    if value == value:
        return reason_of(value, cell.strip())
    reason = numbers.reason(cell)
    if reason in NOT_NUMBERS.values() or reason == "too large":
        return reason
    shown, word = repr(cell.strip()[:TEXT_SHOWN]), _words(cell)
    for words, what in ((_OPEN, "open sensor"), (_BEYOND, "beyond the range")):
        if word in words and not any(sign.isdigit() for sign in cell):
            return f"{what}: {shown}"
    return f"{'odd separators' if reason == 'odd separators' else 'not a number'}: {shown}"


@dataclass
class Rows:
    """Gathers rows of readings until they are worth a batch; a row has a cell for each of its sensors."""

    channels: Sequence[Channel]
    numbers: Numbers
    line: int | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    count: int = 0
    first: Stamp | None = None
    sensors: Sensors = field(default_factory=Sensors)
    _rows: list[tuple[int, int | None]] = field(default_factory=list)
    _cells: list[str] = field(default_factory=list)
    _owners: list[int] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _at_once: int = 0

    def __post_init__(self) -> None:
        """Refuse a table with more columns than any log."""
        if len(self.channels) > MOST_CHANNELS:
            raise BrokenInputError(
                f"line {self.line or 1} names {len(self.channels)} columns of readings, more than {MOST_CHANNELS}, "
                "which no log has; check the file"
            )

    def add(self, line: int, stamp: Stamp | None, cells: Sequence[str], owners: Sequence[int] | None = None) -> None:
        """Add the cells of one reading; ``owners`` are the channels they belong to, where it is not all of them.

        A stamp of another clock than the first of the file is none.
        """
        if stamp is not None and self.first is None:
            self.first, self.sensors.first_ns = stamp, stamp.ns
        known = stamp is not None and self.first is not None and stamp.kind == self.first.kind
        self._rows.append((line, stamp.ns if stamp is not None and known else None))
        self._cells.extend(cells)
        self._owners.extend(range(len(self.channels)) if owners is None else owners)
        self._sizes.append(len(cells))
        self.count += 1

    def add_block(
        self,
        line: int,
        kind: str,
        ns: NDArray[np.int64],
        read: NDArray[np.float64],
        owners: Callable[[], NDArray[np.int64]] | None = None,
    ) -> bool:
        """Add rows from ``line`` on, each of ``read`` numbers, NaN for an empty cell; tell whether that can be done.

        It cannot where a number is none of its channel, or where the stamps are not of the clock of the first of them.
        ``owners`` gives the first channel of each row, where rows are of different ones that have the same units.
        """
        channels = self.channels[: read.shape[1]]
        if self.first is None or self.first.kind != kind or self.missing or len(channels) < read.shape[1]:
            return False
        factors, shifts = (np.array([getattr(one, name) for one in channels]) for name in ("factor", "shift"))
        values, bad = settled(read, factors, shifts, np.array([one.unit == "degC" for one in channels]))
        empty = np.isnan(read)
        if (bad & ~empty).any():
            return False
        self._gather()
        lines = np.arange(line, line + len(ns))
        if owners is None:
            self._add_rows(0, Readings(ns, values, None, lines))
        else:
            firsts = owners()
            for first in np.unique(firsts).tolist():
                self._add_rows(first, Readings(ns, values, None, lines).part(firsts == first))
        self.count += len(ns)
        self._at_once += read.size
        return True

    def _add_rows(self, first: int, rows: Readings) -> None:
        for n in range(rows.values.shape[1]):
            values = np.ascontiguousarray(rows.values[:, n])
            reasons = None
            if (empty := np.isnan(values)).any():
                reasons = np.full(len(values), None, object)
                reasons[empty] = NOT_NUMBERS[""]
            sensor = self._sensor(self.channels[first + n], first + n)
            self.sensors.add(sensor, Readings(rows.ns, values, reasons, rows.lines))

    @property
    def full(self) -> bool:
        """Whether the readings should be handed on."""
        return len(self._cells) + self._at_once >= BATCH_READINGS or len(self._rows) >= BATCH_READINGS

    def take(self) -> dict[str, pd.DataFrame]:
        """Return the samples gathered, and begin anew."""
        self._gather()
        self._at_once = 0
        return self.sensors.take(self.first.kind if self.first and self.first.kind != ELAPSED else None)

    def _gather(self) -> None:
        if self._cells:
            values, reasons = self._values()
            rows = np.repeat(np.arange(len(self._rows)), self._sizes)
            lines = np.array([line for line, _ in self._rows], np.int64)[rows]
            ns = np.array([ns or 0 for _, ns in self._rows], np.int64)[rows]
            known = np.array([ns is not None for _, ns in self._rows], np.bool_)[rows]
            every = Readings(ns=ns, values=values, reasons=reasons, lines=lines)
            untimed = Readings(ns=None, values=values, reasons=reasons, lines=lines)
            owners = np.array(self._owners, np.int64)
            for n, one in enumerate(self.channels):
                mine = np.flatnonzero(owners == n)
                # Readings without a time stay where they stand among the others.
                for run in np.split(mine, np.flatnonzero(np.diff(known[mine])) + 1):
                    if len(run):
                        readings = every if known[run[0]] else untimed
                        self.sensors.add(self._sensor(one, n), readings.part(run))
        self._rows, self._cells, self._owners, self._sizes = [], [], [], []

    def last(self) -> dict[str, pd.DataFrame]:
        """Return the rest of the samples, and the sensors: only now it is known what to beware of in them."""
        tables = self.take()
        for n, one in enumerate(self.channels):
            self._sensor(one, n)
        return {**tables, **self.sensors.table()}

    def _sensor(self, one: Channel, n: int) -> Sensor:
        column = Column(one.name, quantity=one.quantity, unit=one.unit, note=one.note)
        return self.sensors.channel(column, one.gpu, None, self.line or 1, n)

    def _values(self) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
        owners = np.array(self._owners, dtype=np.intp)
        factors = np.array([one.factor for one in self.channels])[owners]
        shifts = np.array([one.shift for one in self.channels])[owners]
        celsius = np.array([one.unit == "degC" for one in self.channels])[owners]
        read = self.numbers.many(self._cells)
        values, bad = settled(read, factors, shifts, celsius)
        reasons = np.full(len(self._cells), None, dtype=object)
        for place, cell in enumerate(self._cells) if self.missing else ():
            if cell in self.missing:
                reasons[place], bad[place] = self.missing[cell], True
        for place in np.flatnonzero(bad).tolist():
            reasons[place] = reasons[place] or _reason(self._cells[place], float(read[place]), self.numbers)
        values[bad] = np.nan
        return values, reasons


def clock_fact(first: Stamp | None) -> dict[str, str]:
    """Return the fact on which clock the readings stand.

    >>> clock_fact(None), clock_fact(Stamp("UTC", 0))
    ({'clock': 'none'}, {'clock': 'UTC'})
    """
    return {"clock": first.kind if first else "none"}
