"""Every error a user can meet, as a tree; each knows the exit code of the command line and the status over HTTP.

::

    ProfsvcError                 5  500
    ├── UsageError               2  400  the question itself is wrong
    │   └── MethodError          2  405  nothing answers this method at this path
    ├── NotFoundError            3  404  nothing of that name; the nearest names are listed
    ├── AccessError              4  403  who asks may not do this
    │   └── TokenError           4  401  who asks gives no token, or none that holds
    ├── ServiceError             5  503  the store, the server or the network cannot answer
    │   ├── StoreBusyError       5  503  another process holds the store
    │   ├── StoreLostError       5  503  the server of the store has gone; it may come back
    │   ├── StoreVersionError    5  503  the store's schema is not this program's
    │   ├── NoSpaceError         5  507  a disk is full
    │   ├── OverloadedError      5  503  more is asked at once than is answered
    │   ├── SlowClientError      5  408  what was to come in did not come in time
    │   └── ServerAwayError      5  502  the server of profsvc cannot be reached, or broke off
    ├── InputError               6  422  a file is refused; says the file, the line, what was seen, what to do
    │   ├── UnknownFormatError   6  422  no reader knows these bytes, or more than one does
    │   ├── BrokenInputError     6  422  the reader knows the format, but the content cannot be right
    │   └── TooLargeError        6  413  more bytes than are taken
    ├── PartlyStoredError        7  500  some files of the command were stored, others refused
    └── DomainError              5  500  a table under profsvc/data is wrong: a defect of this program

Raise with one sentence that says what, where, what was seen, what is allowed, and what to do.
"""

import difflib
import errno
import re
from collections.abc import Iterable, Iterator


class ProfsvcError(Exception):
    """Any error that is shown to a user as its text alone."""

    exit_code = 5
    status = 500

    @classmethod
    def code(cls) -> str:
        """Return the name of the error for programs.

        >>> StoreBusyError.code(), NotFoundError.code()
        ('store_busy', 'not_found')
        """
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).lower()


class UsageError(ProfsvcError):
    """The question itself is wrong."""

    exit_code = 2
    status = 400


class MethodError(UsageError):
    """Nothing answers this method at this path; ``allowed`` do."""

    status = 405
    allowed: tuple[str, ...] = ()


class NotFoundError(ProfsvcError):
    """Nothing of that name exists."""

    exit_code = 3
    status = 404

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


class AccessError(ProfsvcError):
    """Who asks may not do this."""

    exit_code = 4
    status = 403


class TokenError(AccessError):
    """Who asks gives no token, or none that holds."""

    status = 401


class ServiceError(ProfsvcError):
    """The store, the server or the network cannot answer."""

    status = 503


class StoreBusyError(ServiceError):
    """Another process holds the store."""


class StoreLostError(ServiceError):
    """The server of the store has gone, perhaps only for a moment."""


class StoreVersionError(ServiceError):
    """The store's schema is not the one this program works with."""


class NoSpaceError(ServiceError):
    """A disk is full."""

    status = 507


class OverloadedError(ServiceError):
    """More is asked at once than is answered."""


class SlowClientError(ServiceError):
    """What was to come in did not come in time."""

    status = 408


class ServerAwayError(ServiceError):
    """The server of profsvc cannot be reached, or broke off; it may come back."""

    status = 502


class InputError(ProfsvcError):
    """A file is refused."""

    exit_code = 6
    status = 422


class UnknownFormatError(InputError):
    """No reader knows these bytes, or more than one does."""


class BrokenInputError(InputError):
    """The reader knows the format, but the content cannot be right."""


class TooLargeError(InputError):
    """More bytes than are taken."""

    status = 413


class PartlyStoredError(ProfsvcError):
    """Some files of the command were stored, others refused."""

    exit_code = 7


class DomainError(ProfsvcError):
    """A table under ``profsvc/data`` is wrong."""


FULL = {errno.ENOSPC, errno.EDQUOT}
OF_DISKS = {*FULL, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
"""What is no defect of a program: a disk that is full, or that it may not write."""


def disk_error(error: OSError, what: str) -> ServiceError:
    """Return the error for what a disk said when ``what`` was to be written.

    >>> str(disk_error(OSError(errno.ENOSPC, "No space left on device"), "the answer"))
    'the answer cannot be written: no space is left on the disk; free some space and repeat'
    """
    if error.errno in FULL:
        do = "no space is left on the disk; free some space and repeat"
        return NoSpaceError(f"{what} cannot be written: {do}")
    return ServiceError(f"{what} cannot be written: {error.strerror or error}; check the disk and your rights to it")


def kinds(root: type[ProfsvcError] = ProfsvcError) -> Iterator[type[ProfsvcError]]:
    """Yield every kind of error of the tree."""
    yield root
    for kind in root.__subclasses__():
        yield from kinds(kind)


def unfit(cells: int, needed: object) -> str:
    """Say that a row has not the cells of its table.

    >>> unfit(1, 3), unfit(4, "1 or 2")
    ('it has 1 cell but needs 3', 'it has 4 cells but needs 1 or 2')
    """
    return f"it has {counted(cells, 'cell')} but needs {needed}"


def counted(count: int, what: str) -> str:
    """Return how many there are of something, as words.

    >>> counted(1, "launch"), counted(0, "sample"), counted(12_000, "query")
    ('1 launch', '0 samples', '12000 queries')
    """
    if count == 1:
        return f"1 {what}"
    if what.endswith("y"):
        return f"{count} {what[:-1]}ies"
    return f"{count} {what}{'es' if what.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
