"""Every error a user can meet, as a tree; each leaf knows the exit code of the command line.

::

    ProfsvcError
    ├── UsageError            2  the question itself is wrong
    ├── NotFoundError         3  nothing of that name; the nearest names are listed
    ├── ServiceError          5  the store, the server or the network cannot answer
    │   ├── StoreBusyError       another process holds the store
    │   ├── StoreLostError       the server of the store has gone; it may come back
    │   └── StoreVersionError    the store's schema is not this program's
    ├── InputError            6  a file is refused; says the file, the line, what was seen, what to do
    │   ├── UnknownFormatError   no reader knows these bytes, or more than one does
    │   └── BrokenInputError     the reader knows the format, but the content cannot be right
    ├── PartlyStoredError     7  some files of the command were stored, others refused
    └── DomainError           5  a table under profsvc/data is wrong: a defect of this program

Raise with one sentence that says what, where, what was seen, what is allowed, and what to do.
"""

import difflib
from collections.abc import Iterable


class ProfsvcError(Exception):
    """Any error that is shown to a user as its text alone."""

    exit_code = 5


class UsageError(ProfsvcError):
    """The question itself is wrong."""

    exit_code = 2


class NotFoundError(ProfsvcError):
    """Nothing of that name exists."""

    exit_code = 3

    @classmethod
    def near(cls, what: str, name: str, known: Iterable[str]) -> "NotFoundError":
        """Build the error with the known names most like ``name``.

        >>> str(NotFoundError.near("device", "H20", ["H200", "A100"]))
        "no device named 'H20'; did you mean 'H200'?"
        """
        known = list(known)
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        if close:
            return cls(f"no {what} named {name!r}; did you mean {' or '.join(map(repr, close))}?")
        listed = ", ".join(map(repr, sorted(known)[:10])) or "none yet"
        if len(known) > 10:
            listed += f" and {len(known) - 10} more"
        return cls(f"no {what} named {name!r}; there is {listed}")


class ServiceError(ProfsvcError):
    """The store, the server or the network cannot answer."""


class StoreBusyError(ServiceError):
    """Another process holds the store."""


class StoreLostError(ServiceError):
    """The server of the store has gone, perhaps only for a moment."""


class StoreVersionError(ServiceError):
    """The store's schema is not the one this program works with."""


class InputError(ProfsvcError):
    """A file is refused."""

    exit_code = 6


class UnknownFormatError(InputError):
    """No reader knows these bytes, or more than one does."""


class BrokenInputError(InputError):
    """The reader knows the format, but the content cannot be right."""


class PartlyStoredError(ProfsvcError):
    """Some files of the command were stored, others refused."""

    exit_code = 7


class DomainError(ProfsvcError):
    """A table under ``profsvc/data`` is wrong."""
