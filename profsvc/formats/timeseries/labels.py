"""Channels of meters and sensors, with the quantity and unit that a column label implies."""

import re
import unicodedata
from dataclasses import dataclass, replace

from profsvc.specs import Unit, units

TOOL = "meter"
UNKNOWN, OTHER = "unknown", "other"
MAX_SHOWN_CHARS = 40
# The time to search a label for its unit grows with the square of its length.
MAX_LABEL_CHARS = 500
ABSOLUTE_ZERO = -273.15
# Shift to the zero of degC, in the printed unit.
TEMPERATURE_SHIFTS = {
    "degF": -32.0,
    "F": -32.0,
    "fahrenheit": -32.0,
    "K": ABSOLUTE_ZERO,
    "degK": ABSOLUTE_ZERO,
    "kelvin": -273.15,
}
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
# Ch001 Degrees C, Inlet °C
_DEGREES_LAST = re.compile("(.+?) +((?:[\u00b0\u00ba]|[Dd]eg(?:rees?|[.])?) ?[CFK])")
_JOINED = re.compile("[\u2103\u2109\u3380-\u33df]")
# The character \u2103 in GBK, decoded as Latin-1.
GBK_CELSIUS = "\u00a1\u00e6"
_PARTS = re.compile(r"[kMG]Hz|[kM]?Wh|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_COUPLING = re.compile(r" (?:AC|DC)$")
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
# Symbols of quantities, as in U1/V.
_SYMBOLS = {"P": "power", "U": "voltage", "I": "current", "T": "temperature", "E": "energy"}
_SYMBOL = re.compile(r"[PUITE](?:[0-9]{1,3}|rms|avg|mean|max|min|tot|sum)?")
# Words that are units at the end of any name: n1_watts, PkgWatt, clock_mhz, util_percent.
_LAST = {"watt", "watts", "volt", "volts", "amp", "amps", "joule", "joules", "celsius", "fahrenheit", "percent", "pct"}
_LAST |= {"mhz", "ghz", "kwh", "wh", "kib", "mib", "gib"}
_SPELLED = {"mhz": "MHz", "ghz": "GHz", "kwh": "kWh", "wh": "Wh", "percent": "%", "pct": "%"}
_SPELLED |= {"kib": "KiB", "mib": "MiB", "gib": "GiB"}
# Unambiguous units at the end of any name: VDD_IN_mW.
_PRINTED = {"mW", "kW", "mWh", "kWh", "Wh", "mJ", "kJ", "uJ", "mA", "uA", "mV", "kV", "degC", "degF"}
# Words that change the unit after them: tokens per joule, kilo watts.
_NOT_BEFORE = {"per", "milli", "micro", "nano", "kilo", "mega", "giga", "m", "k", "u", "n"}
_LIMITS = {"limit", "cap", "tdp"}
# Column names that are units; a single letter only if it cannot be the name of a sensor.
_POWER_FACTORS = {"pf", "powerfactor", "costheta", "cosphi"}
_WORDS = {"watt", "watts", "volt", "volts", "amp", "amps", "joule", "joules", *_POWER_FACTORS}
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
    """Return the unit that a meter prints as ``token``; None if it is unknown.

    >>> unit_of("Watt-Hour").factor, unit_of("\u2103").si_unit, unit_of("g")
    (3600.0, 'degC', None)
    >>> unit_of("V DC").si_unit, unit_of("kW\u00b7h").si_unit
    ('V', 'J')
    """
    # East Asian programs print some units as one character, such as \u2103.
    token = _JOINED.sub(lambda sign: unicodedata.normalize("NFKC", sign[0]), token.replace(GBK_CELSIUS, "\u2103"))
    token = _MICRO.sub("u", _DEGREES.sub("deg", _COUPLING.sub("", token.strip()).replace("\u00b7", "")))
    known = units(TOOL)
    # Upper and lower case distinguish symbols (mW, MW), but not words.
    return known.get(token) or (known.get(token.lower()) if len(token) > 3 else None)


def letters_of_name(name: str) -> str:
    """Return the letters of a name in lower case."""
    return re.sub(r"[^a-z]", "", name.lower())


def split_label(label: str) -> tuple[str, str | None]:
    """Split the label of a column into its name and its unit.

    >>> split_label("Main Avg Power (mW)"), split_label("power_w"), split_label("Watts"), split_label("T5")
    (('Main Avg Power', 'mW'), ('power_w', 'W'), ('Watts', 'watts'), ('T5', None))
    >>> split_label("Power/W"), split_label("Perf/W"), split_label("Current A"), split_label("Power (W)/mean")
    (('Power', 'W'), ('Perf/W', None), ('Current A', None), ('Power mean', 'W'))
    >>> split_label("vram_used_mib"), split_label("used_mb")  # 10^6 or 2^20 bytes: a name does not tell
    (('vram_used_mib', 'MiB'), ('used_mb', None))
    >>> split_label("Busy%"), split_label("%"), split_label("\u00b0C"), split_label("Celsius")
    (('Busy%', '%'), ('%', None), ('\u00b0C', '\u00b0C'), ('Celsius', 'Celsius'))
    >>> split_label("Ch001 Degrees C"), split_label("Inlet \u00b0C"), split_label("Zone degC")
    (('Ch001', 'Degrees C'), ('Inlet', '\u00b0C'), ('Zone', 'degC'))
    """
    label = label.strip()
    searched = label if len(label) <= MAX_LABEL_CHARS else ""
    if (match := _BRACKETS.fullmatch(searched)) and unit_of(match[2]):
        return (match[1] or label), match[2]
    if (inside := _INSIDE.fullmatch(searched)) and unit_of(inside[2]):
        return f"{inside[1].strip()} {inside[3]}", inside[2]
    if (comma := _AFTER_COMMA.fullmatch(searched)) and unit_of(comma[2]):
        return comma[1], comma[2]
    if degrees := _DEGREES_LAST.fullmatch(searched):
        return degrees[1], degrees[2]
    after = _AFTER_SIGN.fullmatch(searched)
    if after and (unit := unit_of(after[2])) and (_is_of(after[1], unit) or _is_symbol(after[1], unit)):
        return after[1], after[2]
    if label.endswith("%") and label[:-1].strip():
        return label, "%"
    stem, _, suffix = label.rpartition("_")
    if stem and suffix in _PRINTED:
        return label, suffix
    unit = unit_of(_SUFFIXES.get(suffix.lower(), "")) if stem else None
    # Counters of RAPL are named after their domain: package-0_uj.
    if unit and (_is_of(stem, unit) or suffix == "uj"):
        return label, unit.token
    parts = [part.lower() for part in _PARTS.findall(searched)]
    if len(parts) > 1 and parts[-1] in _LAST and parts[-2] not in _NOT_BEFORE and "/" not in label.rpartition(".")[2]:
        return label, _SPELLED.get(parts[-1], parts[-1])
    if label in _LETTERS or letters_of_name(label) in _WORDS:
        word = letters_of_name(label)
        unit_name = label if label in _LETTERS else word
        return label, "pf" if word in _POWER_FACTORS else unit_name
    is_degrees = _DEGREES.match(label) or label.lower() in _LAST
    return label, label if is_degrees and (found := unit_of(label)) and found.dimension == "temperature" else None


def _is_of(name: str, unit: Unit) -> bool:
    """Tell whether a name contains the quantity of a unit."""
    return any(word in name.lower() for word in _STEMS.get(unit.dimension, ()))


def _is_symbol(name: str, unit: Unit) -> bool:
    """Tell whether a name is the symbol of the quantity of a unit."""
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
    return Channel(name, quantity, unit.si_unit, unit.factor, TEMPERATURE_SHIFTS.get(unit.token, 0.0))


def channel_from_label(label: str) -> Channel:
    """Return the channel that the label of a column implies."""
    one = channel(*split_label(label))
    if one.unit == UNKNOWN and len(label) <= MAX_LABEL_CHARS and (found := _BRACKETS.fullmatch(label.strip())):
        one = replace(one, note=f"unknown unit {found[2][:MAX_SHOWN_CHARS]!r}: {AS_PRINTED}") if found[2] else one
    is_limit = (
        one.unit != UNKNOWN and len(label) <= MAX_LABEL_CHARS and _LIMITS & {*map(str.lower, _PARTS.findall(label))}
    )
    return replace(one, quantity="limit") if is_limit else one
