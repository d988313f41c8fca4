"""Query parameters and form fields of a request; unknown ones are errors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from profsvc.errors import NotFoundError, UsageError

T = TypeVar("T")


class RequestArgs:
    """The query parameters of a request; `reject_unknown` raises for unused ones."""

    def __init__(self, request: Request | Sequence[tuple[str, str]]) -> None:
        """Take the query parameters of a request, or the fields of a form."""
        self._pairs = request.query_params.multi_items() if isinstance(request, Request) else list(request)
        self._read: set[str] = set()

    def texts(self, name: str) -> list[str]:
        """Return all values of a parameter; raise `UsageError` for one with a NUL character."""
        self._read.add(name)
        values = [value for key, value in self._pairs if key == name]
        if any("\0" in value for value in values):
            raise UsageError(f"{name}: a text holds no NUL character")
        return values

    def text(self, name: str, default: str = "") -> str:
        """Return the value of a parameter; an empty value counts as missing."""
        values = self.texts(name)
        if len(values) > 1:
            raise UsageError(f"{name} is given {len(values)} times; give it once")
        return values[0] if values and values[0] else default

    def required(self, name: str, what: str) -> str:
        """Return the value of a required parameter."""
        if not (value := self.text(name)):
            raise UsageError(f"{name} is missing: {what}")
        return value

    def choice(self, name: str, allowed: Iterable[str], default: str) -> str:
        """Return a value that must be one of ``allowed``."""
        value, known = self.text(name, default), list(allowed)
        if value not in known:
            raise UsageError(f"{name}={value!r} is not valid; choose {' or '.join(filter(None, known))}")
        return value

    def flag(self, name: str) -> bool:
        """Return a flag, given as 1 or 0."""
        return self.choice(name, ("0", "1"), "0") == "1"

    def number(self, name: str, kind: Callable[[str], T], default: T, what: str) -> T:
        """Return a number of a type."""
        value = self.text(name)
        try:
            if value.isascii() and "_" not in value:
                return kind(value) if value else default
        except (ValueError, OverflowError):
            pass
        raise UsageError(f"{name}={value!r} must be {what}")

    def numbers(self, name: str, unit: str) -> list[float]:
        """Return all values of a parameter as numbers, each text one or several with commas."""
        parts = [part for text in self.texts(name) for part in text.split(",") if part.strip()]
        try:
            if not any("_" in part or not part.isascii() for part in parts):
                return [float(part) for part in parts]
        except ValueError:
            pass
        raise UsageError(f"{name}={','.join(parts)!r} must be numbers in {unit}, such as 500 or 500,80")

    def count(self, name: str, default: int, largest: int) -> int:
        """Return a count from 1 to ``largest``."""
        value = self.number(name, int, default, "a whole number")
        if not 1 <= value <= largest:
            raise UsageError(f"{name}={value} must be from 1 to {largest}")
        return value

    def pairs(self, name: str, example: str) -> dict[str, str]:
        """Return the values of a parameter of the form key=value."""
        found = {}
        for text in self.texts(name):
            key, sign, value = text.partition("=")
            if not key or not sign:
                raise UsageError(f"{name}={text!r} must have the form {example}")
            found[key] = value
        return found

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return the values of all parameters with a prefix, by the rest of their names."""
        found = {key.removeprefix(prefix): value for key, value in self._pairs if key.startswith(prefix)}
        self._read |= {prefix + key for key in found}
        return found

    def remaining(self) -> list[tuple[str, str]]:
        """Return the parameters that were not read yet."""
        found = [(key, value) for key, value in self._pairs if key not in self._read]
        self._read |= {key for key, _ in found}
        return found

    def reject_unknown(self) -> None:
        """Raise `UsageError` for parameters that were not read."""
        for key, _ in self._pairs:
            if key not in self._read:
                if not self._read:
                    raise UsageError(f"this path takes no parameters; remove {key!r}")
                raise UsageError(str(NotFoundError.near("parameter", key, self._read)))


def require_object(value: Any, what: str) -> Mapping[str, Any]:
    """Return a value that must be a JSON object."""
    if not isinstance(value, dict):
        raise UsageError(f"{what} must be a JSON object")
    return value
