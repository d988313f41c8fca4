"""The questions of a request, read and refused: none is passed over in silence."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from profsvc.errors import NotFoundError, UsageError

T = TypeVar("T")


class Asked:
    """What stands behind the ``?`` of a request; `done` refuses what nobody asked for."""

    def __init__(self, request: Request | Sequence[tuple[str, str]]) -> None:
        """Read it, or the fields of a form."""
        self._all = request.query_params.multi_items() if isinstance(request, Request) else list(request)
        self._taken: set[str] = set()

    def texts(self, name: str) -> list[str]:
        """Return all values of a name."""
        self._taken.add(name)
        return [value for key, value in self._all if key == name]

    def text(self, name: str, default: str = "") -> str:
        """Return the one value of a name; one without a value counts as not given."""
        values = self.texts(name)
        if len(values) > 1:
            raise UsageError(f"{name} is given {len(values)} times; give it once")
        return values[0] if values and values[0] else default

    def needed(self, name: str, what: str) -> str:
        """Return the value of a name that must be given."""
        if not (value := self.text(name)):
            raise UsageError(f"{name} is missing: {what}")
        return value

    def among(self, name: str, allowed: Iterable[str], default: str) -> str:
        """Return a value that is one of a few."""
        value, known = self.text(name, default), list(allowed)
        if value not in known:
            raise UsageError(f"{name}={value!r} is not known; it can be {' or '.join(filter(None, known))}")
        return value

    def flag(self, name: str) -> bool:
        """Return whether something is wanted: 1 or 0."""
        return self.among(name, ("0", "1"), "0") == "1"

    def number(self, name: str, kind: Callable[[str], T], default: T, what: str) -> T:
        """Return a number."""
        value = self.text(name)
        try:
            if value.isascii() and "_" not in value:
                return kind(value) if value else default
        except (ValueError, OverflowError):
            pass
        raise UsageError(f"{name}={value!r} must be {what}")

    def count(self, name: str, default: int, most: int) -> int:
        """Return how many are wanted: from 1 to the most there can be."""
        value = self.number(name, int, default, "a whole number")
        if not 1 <= value <= most:
            raise UsageError(f"{name}={value} must be from 1 to {most}")
        return value

    def pairs(self, name: str, example: str) -> dict[str, str]:
        """Return the values of a name that are key=value."""
        found = {}
        for text in self.texts(name):
            key, sign, value = text.partition("=")
            if not key or not sign:
                raise UsageError(f"{name}={text!r} must look like {example}")
            found[key] = value
        return found

    def starting(self, prefix: str) -> dict[str, str]:
        """Return the values of all names that begin so, by what follows."""
        found = {key.removeprefix(prefix): value for key, value in self._all if key.startswith(prefix)}
        self._taken |= {prefix + key for key in found}
        return found

    def others(self) -> list[tuple[str, str]]:
        """Return what was not taken yet, and take it."""
        found = [(key, value) for key, value in self._all if key not in self._taken]
        self._taken |= {key for key, _ in found}
        return found

    def done(self) -> None:
        """Refuse what was given and is not known here."""
        for key, _ in self._all:
            if key not in self._taken:
                if not self._taken:
                    raise UsageError(f"this path takes no parameters; {key!r} is given")
                raise UsageError(str(NotFoundError.near("parameter", key, self._taken)))


def object_of(value: Any, what: str) -> Mapping[str, Any]:
    """Return what must be a JSON object."""
    if not isinstance(value, dict):
        raise UsageError(f"{what} must be a JSON object")
    return value
