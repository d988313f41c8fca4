"""Which lines call a function that the compiler inlined: by the texts of the lines, as an export names no calls.

The instructions of an inlined function have its own lines. Those of a header of the toolkit lie in no code of the user;
of a function or lambda on one line, the lines that call it are as much the place to change as its own.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from profsvc.specs.advice.line_evidence import inlined_calls

Line = tuple[str | None, int | None]
Texts = Mapping[Line, str]
FUNCTION = re.compile(r"[\w>&*]\s+[&*]*([^\W\d]\w*)\s*$")
LAMBDA = re.compile(r"(?:const\s+)?auto\s*&?\s*([^\W\d]\w*)\s*=\s*\[")
CALL = re.compile(r"([^\W\d]\w*)\s*(?:<[^<>;()]*>\s*)?\(")
STATEMENTS = frozenset(("case", "catch", "do", "else", "for", "goto", "if", "return", "switch", "throw", "while"))
SHARE_OF_CALLS = 0.5
"""What the lines that call a function of one line have of its time."""
MAX_DEPTH = 4
MAX_CHARACTERS = 500
"""Of the text of a line: longer ones were written by no person, and are not searched."""


def calls_of_header(file: str, texts: Texts) -> list[Line]:
    """Return the lines whose text calls a function of a header of the toolkit; none if its functions are not known."""
    path = file.replace("\\", "/")
    called = next((call for header, call in inlined_calls().items() if header in path), None)
    if called is None:
        return []
    calls = re.compile(rf"\b(?:{called})\s*\(")
    return [line for line, text in texts.items() if line[0] != file and calls.search(without_comment(text))]


class Calls(NamedTuple):
    """The functions that are defined on one line, and the lines that call them."""

    defined: Mapping[Line, str]
    callers: Mapping[str, Mapping[Line, int]]
    """How often each line calls each function."""


def calls_of_short_functions(texts: Texts) -> Calls:
    """Return the functions of one line and who calls them, from the texts of lines."""
    plain = {line: without_comment(text) for line, text in texts.items()}
    defined = {line: name for line, text in plain.items() if (name := defined_function(text))}
    names = set(defined.values())
    callers: dict[str, Counter[Line]] = {}
    for line, text in plain.items() if names else ():
        for name in CALL.findall(text):
            if name in names and defined.get(line) != name:
                callers.setdefault(name, Counter())[line] += 1
    return Calls(defined, callers)


def with_calls(times: Mapping[Line, float], calls: Calls, executed: Mapping[Line, int]) -> dict[Line, float]:
    """Return the times of lines, with those of functions of one line shared with the lines that call them.

    Each call has its share by how often a warp ``executed`` an instruction of its line, the most frequent one; a line
    with no instruction of its own counts as the most frequent of the others.
    """
    defined, callers = calls
    shared = dict.fromkeys(times, 0.0)
    passed = dict(times)
    for _ in range(MAX_DEPTH):
        of_name: dict[str, float] = {}
        for line, time in passed.items():
            name = defined.get(line)
            part = SHARE_OF_CALLS * time if name in callers else 0.0
            shared[line] = shared.get(line, 0.0) + time - part
            if name is not None and part:
                of_name[name] = of_name.get(name, 0.0) + part
        passed = {}
        for name, part in of_name.items():
            most = max(executed.get(line, 0) for line in callers[name]) or 1
            weights = {line: count * (executed.get(line, 0) or most) for line, count in callers[name].items()}
            whole = sum(weights.values())
            for line, weight in weights.items():
                passed[line] = passed.get(line, 0.0) + part * weight / whole
    for line, time in passed.items():
        shared[line] = shared.get(line, 0.0) + time
    return shared


@lru_cache(maxsize=1 << 14)
def without_comment(text: str) -> str:
    """Return the code of a line; nothing of one that is too long.

    >>> without_comment("  s += at(k);  // the sum")
    's += at(k);'
    """
    return text.partition("//")[0].strip() if len(text) <= MAX_CHARACTERS else ""


@lru_cache(maxsize=1 << 14)
def defined_function(text: str) -> str | None:
    """Return the name of the function or lambda that a line defines, with its body, if it does.

    >>> defined_function("__device__ int over(int v, int d) { return v / d; }")
    'over'
    >>> defined_function("auto at = [&](int k) { return f[9 * i + k]; };")
    'at'
    >>> defined_function("for (int k = 0; k < n; ++k) { s += at(k); }")
    """
    if "{" not in text or not text.endswith(("}", "};")):
        return None
    if found := LAMBDA.match(text):
        return found[1]
    head, _, rest = text.partition("(")
    named = FUNCTION.search(head)
    if named is None or any(one in head for one in "{}=;") or ";" in rest.partition("{")[0]:
        return None
    return None if named[1] in STATEMENTS or head.split()[0] in STATEMENTS else named[1]
