"""The little language of ``metrics.csv``: how a counter comes out of a tool's metrics.

::

    expression  = sum { " | " sum }                   alternatives; the first whose names all have a value wins
    sum         = term { ("+" | "-") term }
    term        = factor { ("*" | "/") factor }
    factor      = ["-"] (number | call | name | "(" sum ")")
    call        = ("min" | "max") "(" sum { "," sum } ")"  |  "ceil" "(" sum ")"
    name        = metric  |  metric[KEY]              a vendor's metric, an instance of it
                | @counter                            another counter
                | event:name  |  sql:TABLE.column  |  col:'Column'  |  trace:'Column'  |  ...

Names stand for values in SI units, as the tidy table ``metrics`` holds them: seconds, bytes, Hz, and shares
between 0 and 1. So a duration in nanoseconds is ``gpu__time_duration.sum * 1e9``.

Numpy is imported when an expression is evaluated: who only lists counters does not wait for it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from profsvc.errors import DomainError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Values = Mapping[str, npt.ArrayLike]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>@[A-Za-z_]\w*|[A-Za-z_]\w*:'[^']*'|(?:event|sql):[A-Za-z_][\w.]*|[A-Za-z_][\w.]*(?:\[[^\]]*\])?)"
    r"|(?P<sign>[-+*/(),|]))"
)


class Node(Protocol):
    """A part of an alternative: gives its array from the arrays of the names."""

    def array(self, values: "Mapping[str, Floats]") -> "Floats":
        """Return the value for each launch."""
        ...


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float

    def array(self, values: "Mapping[str, Floats]") -> "Floats":
        """Return the constant."""
        import numpy as np

        return np.asarray(self.value)


@dataclass(frozen=True)
class Name:
    """A metric, a counter or a column."""

    name: str

    def array(self, values: "Mapping[str, Floats]") -> "Floats":
        """Return the values under the name."""
        return values[self.name]


@dataclass(frozen=True)
class Call:
    """An operator or function with its operands."""

    operator: str
    operands: tuple[Node, ...]

    def array(self, values: "Mapping[str, Floats]") -> "Floats":
        """Return the operator over its operands, from the left."""
        first, *others = (operand.array(values) for operand in self.operands)
        if not others:
            return _of_one()[self.operator](first)
        for other in others:
            first = _of_two()[self.operator](first, other)
        return first


def _divide(a: "Floats", b: "Floats") -> "Floats":
    import numpy as np

    return np.asarray(np.divide(a, np.where(b == 0, np.nan, b)))


@cache
def _of_one() -> "Mapping[str, Callable[[Floats], Floats]]":
    """Return what has one operand."""
    import numpy as np

    return {"-": np.negative, "ceil": np.ceil, "min": np.array, "max": np.array}


@cache
def _of_two() -> "Mapping[str, Callable[[Floats, Floats], Floats]]":
    """Return what has two operands or more."""
    import numpy as np

    return {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "/": _divide,
        "min": np.minimum,
        "max": np.maximum,
    }


@dataclass(frozen=True)
class Alternative:
    """One way to compute a counter; ``names`` are all the values it needs."""

    text: str
    names: tuple[str, ...]
    node: Node


class Evaluated(NamedTuple):
    """A value and the index of the alternative used, for each launch; NaN and -1 where none could be used."""

    value: "Floats"
    alternative: "npt.NDArray[np.int64]"


@dataclass(frozen=True)
class Expression:
    """The alternatives to compute a counter, best first."""

    text: str
    alternatives: tuple[Alternative, ...]

    @property
    def names(self) -> frozenset[str]:
        """All names that any alternative needs."""
        return frozenset(name for alternative in self.alternatives for name in alternative.names)

    def evaluate(self, values: "Values") -> Evaluated | None:
        """Evaluate over launches; None if no alternative has all its names in ``values``.

        Each launch takes the first alternative whose names are all non-null there. Division by zero gives NaN.

        >>> import numpy as np
        >>> e = parse("a / b | c").evaluate({"a": [1.0, 3.0, np.nan], "b": [2.0, 0.0, 1.0], "c": [7.0, 7.0, 7.0]})
        >>> e.value.tolist(), e.alternative.tolist()
        ([0.5, nan, 7.0], [0, 0, 1])
        """
        import numpy as np

        usable = [(i, a) for i, a in enumerate(self.alternatives) if all(name in values for name in a.names)]
        if not usable:
            return None
        arrays = {name: floats(values[name]) for _, a in usable for name in a.names}
        length = len(next(iter(arrays.values()))) if arrays else _length(values)
        value, used = np.full(length, np.nan), np.full(length, -1, dtype=np.int64)
        for index, alternative in usable:
            free = used < 0
            for name in alternative.names:
                free &= ~np.isnan(arrays[name])
            if free.any():
                with np.errstate(all="ignore"):
                    value = np.where(free, alternative.node.array(arrays), value)
                used[free] = index
        return Evaluated(value, used)


def floats(values: "npt.ArrayLike") -> "Floats":
    """Return ``values`` as floats; nulls of pandas become NaN."""
    import numpy as np

    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values, dtype=np.float64)


def _length(values: "Values") -> int:
    return max((len(floats(v)) for v in values.values()), default=0)


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.names: dict[str, None] = {}

    def peek(self) -> str:
        """Return the sign at hand; an empty text if there is a number, a name or nothing."""
        return self.tokens[self.at].sign

    def take(self, *signs: str) -> str:
        """Return the sign at hand and step over it; raise if it is not among ``signs``."""
        if self.peek() not in signs:
            raise self.wrong(f"expected {' or '.join(signs)}")
        self.at += 1
        return self.tokens[self.at - 1].sign

    def wrong(self, what: str) -> DomainError:
        """Return the error, pointing at the token at hand."""
        return DomainError(f"cannot read expression {self.text!r} at character {self.tokens[self.at].start}: {what}")

    def alternatives(self) -> tuple[Alternative, ...]:
        """Read the whole expression."""
        found = []
        while True:
            start, self.names = self.tokens[self.at].start, {}
            node = self.sum()
            found.append(
                Alternative(self.text[start : self.tokens[self.at].start].strip(), tuple(self.names), node),
            )
            if self.tokens[self.at].kind == "end":
                return tuple(found)
            self.take("|")

    def sum(self) -> Node:
        """Read terms between + and -."""
        node = self.term()
        while self.peek() in ("+", "-"):
            node = Call(self.take("+", "-"), (node, self.term()))
        return node

    def term(self) -> Node:
        """Read factors between * and /."""
        node = self.factor()
        while self.peek() in ("*", "/"):
            node = Call(self.take("*", "/"), (node, self.factor()))
        return node

    def factor(self) -> Node:
        """Read a number, a name, a call or a bracket."""
        token = self.tokens[self.at]
        if token.kind == "number":
            self.at += 1
            return Number(float(token.text))
        if token.kind == "name":
            self.at += 1
            if token.text in ("min", "max", "ceil") and self.peek() == "(":
                return self.call(token.text)
            self.names[token.text] = None
            return Name(token.text)
        if self.take("-", "(") == "-":
            return Call("-", (self.factor(),))
        node = self.sum()
        self.take(")")
        return node

    def call(self, function: str) -> Node:
        """Read the arguments of ``function``."""
        self.take("(")
        operands = [self.sum()]
        while self.take(")", ",") == ",":
            operands.append(self.sum())
        if function == "ceil" and len(operands) != 1:
            raise self.wrong("ceil takes one argument")
        return Call(function, tuple(operands))


class _Token(NamedTuple):
    kind: str
    text: str
    start: int

    @property
    def sign(self) -> str:
        return self.text if self.kind == "sign" else ""


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise DomainError(f"cannot read expression {text!r} at character {at}: {text[at:].strip()[:20]!r}")
        kind = str(match.lastgroup)
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*tokens, _Token("end", "", len(text))]


def parse(text: str) -> Expression:
    """Parse an expression; raise `DomainError` that points at the character if it is wrong.

    >>> parse("sm__cycles_active.sum / (4*@sm_count) | event:active_cycles").alternatives[0].names
    ('sm__cycles_active.sum', '@sm_count')
    """
    return Expression(text, _Parser(text).alternatives())
