"""Events of a trace that are no JSON: versions of PyTorch write inf, N/A, and names whose quotes are not escaped."""

import re
from dataclasses import dataclass

from profsvc.formats.json_stream import BrokenValueError, Json, loads
from profsvc.formats.kineto_events import KINDS

# What follows an event: the next one, which its writer begins with ph, or the end of the list.
_END = re.compile(r'\}(?=\s*,\s*\{\s*"ph"\s*:|\s*,?\s*\]\s*[,}])')
_MEMBER_END = re.compile(r'"(?=\s*,\s*"\w+"\s*:|\s*\}\s*\Z)')
_NO_VALUE = re.compile(r"(:\s*)(?:-?(?:inf|nan)|N/A)(?=\s*[,}\]])")
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_NAME = re.compile(r'("name"\s*:\s*")(.*?)("\s*,\s*"pid"\s*:)', re.DOTALL)
_QUOTE = re.compile(r'(?<!\\)"')
_KIND = re.compile(r'\{\s*"ph"\s*:\s*"(?P<ph>[^"]*)"\s*,\s*"cat"\s*:\s*"(?P<cat>[^"]*)"')
_NEEDED = ("deviceProperties", "baseTimeNanoseconds")


@dataclass(frozen=True)
class Unreadable:
    """An event that cannot be read, and why."""

    text: str
    reason: str

    def __str__(self) -> str:
        """Return the text of the event."""
        return self.text


def event(json: Json) -> object:
    """Read an event: mended if its name has lone quotes or backslashes, or numbers are words; else `Unreadable`.

    Raise `BrokenInputError` where nothing tells its end.
    """
    try:
        return json.value()
    except BrokenValueError as error:
        if not (text := json.until(_END)):
            raise
        return _mended(text, str(error).partition(", so this")[0])


def _mended(text: str, reason: str) -> object:
    escaped = _ESCAPE.sub(lambda found: found[0] if found[1] else r"\\\\", text)
    named = _NAME.sub(lambda found: found[1] + _QUOTE.sub(r'\\"', found[2]) + found[3], escaped, count=1)
    try:
        return loads(_NO_VALUE.sub(r"\1null", named))
    except (ValueError, RecursionError):
        kind = _KIND.match(text)
        is_ours = kind is None or (kind["ph"] == "X" and kind["cat"].lower() in KINDS)
        return Unreadable(text, f"it is no JSON ({reason})") if is_ours else {}


def member(json: Json, key: str) -> object:
    """Read a member of the trace; None for a text that is not needed and whose backslashes are not escaped."""
    try:
        return json.value()
    except BrokenValueError:
        if key in _NEEDED or not json.until(_MEMBER_END):
            raise
        return None
