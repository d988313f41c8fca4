"""Repairs trace events with invalid JSON: some PyTorch versions write inf, N/A and unescaped quotes."""

import re
from dataclasses import dataclass

from profsvc.formats.parsing.json_stream import BrokenValueError, Json, loads
from profsvc.formats.pytorch.events import KINDS

# The end of an event: before the next event, which begins with ph, or the end of the list.
_END = re.compile(r'\}(?=\s*,\s*\{\s*"ph"\s*:|\s*,?\s*\]\s*[,}])')
_MEMBER_END = re.compile(r'"(?=\s*,\s*"\w+"\s*:|\s*\}\s*\Z)')
_NO_VALUE = re.compile(r"(:\s*)(?:-?(?:inf|nan)|N/A)(?=\s*[,}\]])")
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
_NAME = re.compile(r'("name"\s*:\s*")(.*?)("\s*,\s*"pid"\s*:)', re.DOTALL)
_QUOTE = re.compile(r'(?<!\\)"')
_KIND = re.compile(r'\{\s*"ph"\s*:\s*"(?P<ph>[^"]*)"\s*,\s*"cat"\s*:\s*"(?P<cat>[^"]*)"')
_REQUIRED_MEMBERS = ("deviceProperties", "baseTimeNanoseconds")


@dataclass(frozen=True)
class UnreadableEvent:
    """An event that cannot be read, and why."""

    reason: str


def read_event(json: Json) -> object:
    """Read an event, repaired if its name has unescaped characters or a number is a word; else `UnreadableEvent`.

    Raise `BrokenInputError` if its end is unknown.
    """
    try:
        return json.value()
    except BrokenValueError as error:
        if not (text := json.until(_END)):
            raise
        return _repair(text, str(error).partition(", so the JSON")[0])


def _repair(text: str, reason: str) -> object:
    escaped = _ESCAPE.sub(lambda found: found[0] if found[1] else r"\\\\", text)
    named = _NAME.sub(lambda found: found[1] + _QUOTE.sub(r'\\"', found[2]) + found[3], escaped, count=1)
    try:
        return loads(_NO_VALUE.sub(r"\1null", named))
    except (ValueError, RecursionError):
        kind = _KIND.match(text)
        is_ours = kind is None or (kind["ph"] == "X" and kind["cat"].lower() in KINDS)
        return UnreadableEvent(f"invalid JSON ({reason})") if is_ours else {}


def read_member(json: Json, key: str) -> object:
    """Read a member of the trace; None for an unused string with unescaped backslashes."""
    try:
        return json.value()
    except BrokenValueError:
        if key in _REQUIRED_MEMBERS or not json.until(_MEMBER_END):
            raise
        return None
