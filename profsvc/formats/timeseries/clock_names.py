"""Names of columns that are clocks: dates, times of day, timestamps and counts, in several languages."""

import itertools
import re
import unicodedata

from profsvc.formats.parsing.zone_letters import ZONE_PLACE
from profsvc.formats.timeseries.dates import DATE_ORDERS
from profsvc.formats.timeseries.labels import split_label

DATE_NAMES = {"date", "datum"}
TIME_OF_DAY_NAMES = {"time", "zeit", "uhrzeit", "timeofday"}
TIMESTAMP_NAMES = {"timestamp", "timestamps", "datetime", "dateandtime", "zeitstempel", "datumzeit", "datumuhrzeit"}
TIMESTAMP_NAMES |= {
    "datetimeutc",
    "timeutc",
    "utc",
    "utctime",
    "utcdatetime",
    "localtime",
    "timestamputc",
    "datetimestamp",
    "timestamplocal",
    "localtimestamp",
    "localdatetime",
}
TIMESTAMP_NAMES |= {
    "epoch",
    "unixtime",
    "unixtimestamp",
    "epochtime",
    "logtime",
    "sampletime",
    "elapsed",
    "elapsedtime",
}
TIMESTAMP_NAMES |= {"systemtime", "timerelative", "relativetime", "runtime", "wallclocktime", "wallclocktimeutc"}
# The same in other languages, without accents; Chinese, Japanese, Russian and Korean.
TIMESTAMP_NAMES |= {"horodatage", "heure", "dateheure", "dateetheure", "tiempo", "fechahora", "fechayhora", "tempo"}
TIMESTAMP_NAMES |= {"dataora", "dataeora", "datahora", "dataehora", "czas", "tijd", "datumtijd", "zeitpunkt"}
TIMESTAMP_NAMES |= {"\u65f6\u95f4", "\u65e5\u671f\u65f6\u95f4", "\u65f6\u95f4\u6233"}
TIMESTAMP_NAMES |= {"\u6642\u9593", "\u6642\u523b", "\u65e5\u6642"}
TIMESTAMP_NAMES |= {"\u0432\u0440\u0435\u043c\u044f", "\u0434\u0430\u0442\u0430\u0432\u0440\u0435\u043c\u044f"}
TIMESTAMP_NAMES |= {"\uc2dc\uac04"}
# Words that are a date and a time beside each other, but may be anything alone; "eas" is the Czech and Slovak Cas with
# its caron in Windows-1250, read as Latin-1.
CLOCK_PAIRS = {("data", "ora"), ("data", "hora"), ("data", "godzina"), ("data", "czas"), ("fecha", "hora")}
CLOCK_PAIRS |= {("date", "heure"), ("datum", "tijd"), ("datum", "cas"), ("datum", "eas"), ("datum", "tid")}
CLOCK_PAIRS |= {("dato", "tid"), ("tarih", "saat")}
CLOCK_PAIRS |= {("\u65e5\u671f", "\u65f6\u95f4"), ("\u65e5\u4ed8", "\u6642\u523b"), ("\u65e5\u4ed8", "\u6642\u9593")}
CLOCK_PAIRS |= {("\u0434\u0430\u0442\u0430", "\u0432\u0440\u0435\u043c\u044f")}
COUNT_NAMES = {
    "t",
    "seconds",
    "elapsedseconds",
    "timeseconds",
    "timeinseconds",
    "timeofdayseconds",
    "millis",
    "ms",
    "milliseconds",
    "elapsedmilliseconds",
    # Weights & Biases counts seconds since the start of the run.
    "relativetimeprocess",
    "relativetimewall",
}
ORDINAL_NAMES = {"no", "nr", "index", "record", "recordno", "sample", "sampleno", "row", "scan", "scanno", "n", "id"}
ORDINAL_NAMES |= {"count", "number", "sweep", "sweepno"}
# Of Home Assistant, which prints them last.
LAST_NAMES = {"lastchanged", "lastupdated"}
FRACTION_DIGITS = {"millisecond": 3, "milliseconds": 3}
# Beside the clock of a logger that numbers its rows; elsewhere such a column counts since the start.
NUMBERED_FRACTION_DIGITS = {"ms": 3, "us": 6}
ZONE = re.compile(r"(?<![A-Za-z])(?:UTC|GMT) ?(?:([-+]) ?([0-9]{1,2})(?::?([0-9]{2}))?)?(?![A-Za-z0-9])", re.IGNORECASE)

# The order of a date in brackets, as in Time(DD/MM/YYYY h:mm:ss A), and zones by letters, which do not tell an offset.
_ORDER = re.compile(r"[(\[]\s*([YyMDd])\1{0,3}[-/. ]([YyMDd])\2{0,3}[-/. ]([YyMDd])\3{0,3}\b[^()\[\]]*[)\]]")
_FORM = re.compile(r"[(\[] ?[Hh]{1,2}:[Mm]{1,2}(?::[Ss]{1,2}(?:[.:,][\w]{1,6})?)? ?[)\]]")
_ZONE_LETTERS = re.compile(r"[(\[](?:[CEW]ES?T|BST|IST|MSK|[ECMP][SD]T|JST|KST|HKT|SGT|AE[SD]T|LOCAL|local)[)\]]")

# The first column of counters of Windows: the zone of its computer, and by how many minutes UTC is ahead of it.
PDH = re.compile(r"\(PDH-[CT]SV [0-9.]+\)(?: \([^()]*\)\((-?[0-9]{1,4})\))?")
PDH_ORDER = "mdy"
ZONE_NAME = re.compile(rf"\b{ZONE_PLACE}\b")

_ZONE_TITLE = re.compile(
    r"(?i)\b(?:time[ _-]?zone|zeitzone|fuseau horaire|zona horaria|tz|utc[ _-]?offset|gmt[ _-]?offset)\b[^\n]?"
)
_OFFSET = re.compile(r"(?:(?:UTC|GMT) ?)?(?:([-+]) ?([0-9]{1,2})(?::?([0-9]{2}))?)|UTC|GMT|Z", re.IGNORECASE)
_AROUND = " \t\r\n\"':=;,#"
MAX_TITLE_CHARS, MAX_ZONE_CHARS = 300, 60


def date_order(*labels: str) -> str | None:
    """Return the order of the fields of dates that one of the labels names; None if none does.

    >>> date_order("Time(DD/MM/YYYY h:mm:ss A)"), date_order("Date [yyyy-MM-dd]"), date_order("Time (s)")
    ('dmy', 'ymd', None)
    """
    if any(map(PDH.fullmatch, labels)):
        return PDH_ORDER
    for label in labels:
        if (match := _ORDER.search(label)) and len(order := "".join(match.groups()).lower()) == len(set(order)):
            return order if order in DATE_ORDERS else None
    return None


def letters_of(name: str) -> str:
    """Return the letters of a name, small and without accents.

    >>> letters_of("Date_Time"), letters_of("\u010cas [1]")
    ('datetime', 'cas')
    """
    if name.isascii():
        return "".join(filter(str.isalpha, name.lower()))
    letters = "".join(filter(str.isalpha, unicodedata.normalize("NFKD", name.lower())))
    return unicodedata.normalize("NFC", letters)  # Korean letters are composed again


def clock_words(cells: list[str]) -> list[str]:
    """Return the word of each label; a date and a time in another language as those in English.

    >>> clock_words(["D\u00e1tum", "\u010cas (UTC)", "data", "P (W)", "Time %", "Time (CEST)", "Date [D.M.YYYY]"])
    ['date', 'time', 'data', 'p', '', 'time', 'date']
    """
    # A percentage of the time is not a clock.
    words = [_clock_word(cell) if "%" not in cell else "" for cell in cells]
    for place, pair in enumerate(itertools.pairwise(words)):
        if pair in CLOCK_PAIRS:
            words[place : place + 2] = "date", "time"
    return words


def _clock_word(cell: str) -> str:
    return "timestamp" if PDH.fullmatch(cell) else letters_of(_bare(split_label(ZONE_NAME.sub("", cell))[0]))


def _bare(name: str) -> str:
    """Return a name without the zone, the order of a date and the form of a time."""
    return _FORM.sub("", _ZONE_LETTERS.sub("", _ORDER.sub("", ZONE.sub("", name))))


def zone_s(*labels: str) -> int | None:
    """Return the offset in seconds from UTC of the times under labels; None if they do not name a zone.

    >>> zone_s("Date", "Time (UTC)"), zone_s("Date Time, GMT-05:00"), zone_s("Time")
    (0, -18000, None)
    >>> zone_s("(PDH-CSV 4.0) (India Standard Time)(-330)")
    19800
    """
    for label in labels:
        if windows := PDH.fullmatch(label):
            return -60 * int(windows[1]) if windows[1] else None
        if match := ZONE.search(label):
            ahead = int(match[2] or 0) * 3600 + int(match[3] or 0) * 60
            return -ahead if match[1] == "-" else ahead
    return None


def zone_name(*labels: str) -> str:
    """Return the time zone that one of the labels names, such as Europe/Berlin; empty if none does."""
    return next((found[0] for label in labels if (found := ZONE_NAME.search(label))), "")


def titled_zone(line: str) -> tuple[int | None, str]:
    """Return the offset in seconds, or the name, of the time zone that a line above a table gives.

    An offset with a place, as Windows shows it, is that of the winter, so it is a name.

    >>> titled_zone("# Timezone: UTC+02:00"), titled_zone("Time zone;Europe/Berlin"), titled_zone("Zone 1;2")
    ((7200, ''), (None, 'Europe/Berlin'), (None, ''))
    >>> titled_zone('"Time Zone:","(UTC+01:00) Amsterdam, Berlin"')
    (None, '(UTC+01:00) Amsterdam, Berlin')
    """
    if (title := _ZONE_TITLE.search(line[:MAX_TITLE_CHARS])) is None:
        return None, ""
    said = re.split("[;\t]", line[title.end() - 1 :].strip(_AROUND))[0].strip(_AROUND)
    if offset := _OFFSET.fullmatch(said.strip("()[] ")):
        ahead = int(offset[2] or 0) * 3600 + int(offset[3] or 0) * 60
        return (-ahead if offset[1] == "-" else ahead), ""
    return None, said[:MAX_ZONE_CHARS] if any(map(str.isalpha, said)) else ""
