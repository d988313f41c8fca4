"""Names of columns that are clocks: dates, times of day, timestamps and counts, in several languages."""

import itertools
import re
import unicodedata

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

    >>> clock_words(["D\u00e1tum", "\u010cas (UTC)", "data", "P (W)", "Time %"])
    ['date', 'time', 'data', 'p', '']
    """
    # A percentage of the time is not a clock.
    words = [letters_of(ZONE.sub("", split_label(cell)[0])) if "%" not in cell else "" for cell in cells]
    for place, pair in enumerate(itertools.pairwise(words)):
        if pair in CLOCK_PAIRS:
            words[place : place + 2] = "date", "time"
    return words
