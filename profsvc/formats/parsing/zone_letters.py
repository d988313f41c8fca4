"""Time zones that stand behind a time by letters or by name: CEST, Europe/Berlin, W. Europe Daylight Time.

Letters are applied where they have had one offset in all places of the tz database since 2000 and are no custom
abbreviation of others; the rest (CST is of America, Cuba and China) only name a zone, which the user gives with its
whole name.
"""

# Hours ahead of UTC -> letters.
_HOURS = {
    0: "WET",
    1: "CET MET WEST WAT BST",
    2: "CEST MEST EET SAST CAT",
    3: "EEST EAT",
    8: "HKT AWST",
    9: "JST",
    9.5: "ACST",
    10: "AEST",
    10.5: "ACDT",
    11: "AEDT",
    12: "NZST",
    13: "NZDT",
    -4: "EDT",
    -5: "EST",
    -6: "MDT",
    -7: "MST PDT",
    -8: "AKDT",
    -9: "AKST",
    -10: "HST",
}
ZONE_HOURS = {letters: float(hours) for hours, several in _HOURS.items() for letters in several.split()}
"""Letters -> hours ahead of UTC (tz database)."""
# Letters of several offsets, or of other places in other sources.
_SEVERAL = ("CST", "CDT", "PST", "IST", "KST", "MSK", "AST", "ADT", "GST", "SST", "NST", "NDT", "PKT", "IDT", "SGT")
_PLACES = "Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific"
APPLIED_LETTERS = "|".join(sorted(ZONE_HOURS, key=len, reverse=True))
"""A pattern of the letters that tell an offset."""
ZONE_PLACE = rf"(?:{_PLACES})(?:/[A-Z][A-Za-z_]{{2,30}}){{1,2}}"
"""A pattern of a zone of the tz database."""
_WORD = r"[^\W\d_][\w.]{0,30}"
NAMED_ZONE = rf"{'|'.join(_SEVERAL)}|{ZONE_PLACE}|{_WORD}(?: {_WORD}){{0,3}} (?:Time|\w{{0,10}}zeit)"
"""A pattern of the zones that are only named; the last are those of Windows."""
