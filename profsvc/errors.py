"""Every error a user can meet, as a tree; each knows the exit code of the command line and the status over HTTP.

::

    ProfsvcError                 5  500
    ├── UsageError               2  400  bad request: wrong arguments, options or SQL
    │   ├── MethodError          2  405  nothing answers this method at this path
    │   └── TimeLimitError       2  400  a query took longer than its time limit
    ├── NotFoundError            3  404  nothing of that name; the nearest names are listed
    ├── AccessError              4  403  permission denied
    │   └── TokenError           4  401  no token, or no valid one
    ├── ServiceError             5  503  the store, the server or the network cannot answer
    │   ├── StoreBusyError       5  503  another process holds the store
    │   ├── StoreLostError       5  503  lost connection to the store server; it may recover
    │   ├── StoreRightsError     5  500  the user of the store lacks a privilege, which no retry brings
    │   ├── StoreVersionError    5  503  the store has another schema version
    │   ├── NoSpaceError         5  507  a disk is full
    │   ├── OverloadedError      5  503  too many concurrent requests
    │   ├── SlowClientError      5  408  the request body was too slow
    │   └── ServerAwayError      5  502  the profsvc server is unreachable, or closed the connection
    ├── InputError               6  422  a file is rejected; says the file, the line, what was seen, what to do
    │   ├── UnknownFormatError   6  422  unrecognized format, or more than one format matches
    │   ├── BrokenInputError     6  422  the reader knows the format, but the content cannot be right
    │   └── TooLargeError        6  413  more bytes than the limit
    ├── PartlyStoredError        7  500  some files were stored, others rejected
    └── DomainError              5  500  a table under profsvc/data is invalid: an internal error

Raise with one sentence that says what, where, what was seen, what is allowed, and what to do.
"""

import errno
import re
from collections.abc import Iterable, Iterator

MAX_NAMED = 10
"""Names that a message lists before it counts the rest."""
_PASSWORD = re.compile("^([^/:@]*):[^@]*@")
_QUERY_PASSWORD = re.compile("((?:[?&]|^)(?:ssl)?password=)[^&]*")


class ProfsvcError(Exception):
    """Any error that is shown to a user as its text alone."""

    exit_code = 5
    status = 500

    @classmethod
    def code(cls) -> str:
        """Return the name of the error for programs: that of its kind here, which clients know.

        >>> StoreBusyError.code(), NotFoundError.code()
        ('store_busy', 'not_found')
        """
        kind = next(one for one in cls.__mro__ if one.__module__ == __name__)
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__.removesuffix("Error")).lower()


class UsageError(ProfsvcError):
    """Bad request: wrong arguments, options or SQL."""

    exit_code = 2
    status = 400


class MethodError(UsageError):
    """Nothing answers this method at this path; ``allowed`` do."""

    status = 405
    allowed: tuple[str, ...] = ()


class TimeLimitError(UsageError):
    """A query took longer than its time limit."""


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
        if close := nearest_names(name, known):
            return cls(f"no {what} named {name!r}; did you mean {' or '.join(map(repr, close))}?")
        return cls(f"no {what} named {name!r}; there is {first_of(map(repr, sorted(known))) or 'none yet'}")


class AccessError(ProfsvcError):
    """Permission denied."""

    exit_code = 4
    status = 403


class TokenError(AccessError):
    """No token, or no valid one."""

    status = 401


class ServiceError(ProfsvcError):
    """The store, the server or the network cannot answer."""

    status = 503


class StoreBusyError(ServiceError):
    """Another process holds the store."""


class StoreLostError(ServiceError):
    """Lost connection to the store server; it may recover."""


class StoreRightsError(ServiceError):
    """The database user of the store lacks a privilege; whoever runs the database must grant it."""

    status = 500


class StoreVersionError(ServiceError):
    """The store's schema is not the one this program works with."""


class NoSpaceError(ServiceError):
    """A disk is full."""

    status = 507


class OverloadedError(ServiceError):
    """Too many concurrent requests; ``retry_s`` is when to come back."""

    retry_s = 5


class SlowClientError(ServiceError):
    """The client sent its body too slowly, does not read its response, or hung up."""

    status = 408


class ServerAwayError(ServiceError):
    """The profsvc server is unreachable, or closed the connection."""

    status = 502


class InputError(ProfsvcError):
    """A file is rejected."""

    exit_code = 6
    status = 422


class UnknownFormatError(InputError):
    """Unrecognized format, or more than one format matches."""


class BrokenInputError(InputError):
    """The reader knows the format, but the content cannot be right."""


class TooLargeError(InputError):
    """More bytes than the limit."""

    status = 413


class PartlyStoredError(ProfsvcError):
    """Some files were stored, others rejected."""

    exit_code = 7


class DomainError(ProfsvcError):
    """A table under ``profsvc/data`` is wrong."""


DISK_FULL_CODES = {errno.ENOSPC, errno.EDQUOT}
DISK_ERROR_CODES = {*DISK_FULL_CODES, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}
"""Errors of the disk, not of the program: full, read-only or not permitted."""


def disk_error(error: OSError, what: str) -> ServiceError:
    """Return the error for a failed attempt to write ``what``.

    >>> str(disk_error(OSError(errno.ENOSPC, "No space left on device"), "the answer"))
    'the answer cannot be written: no space is left on the disk; free some space and repeat'
    """
    if error.errno in DISK_FULL_CODES:
        do = "no space is left on the disk; free some space and repeat"
        return NoSpaceError(f"{what} cannot be written: {do}")
    return ServiceError(f"{what} cannot be written: {error.strerror or error}; check the disk and your rights to it")


def error_kinds(root: type[ProfsvcError] = ProfsvcError) -> Iterator[type[ProfsvcError]]:
    """Yield every kind of error of the tree; what another module derives is of the same kind."""
    yield root
    for kind in root.__subclasses__():
        if kind.__module__ == __name__:
            yield from error_kinds(kind)


def nearest_names(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that ``name`` may have been meant as: those with the fewest typing errors.

    A typing error is a letter that is missing, wrong or too much, or two that changed places. What a name, or
    a part of it behind an underscore, begins with, and a name with more behind it count as one error; so does all that
    is left of a name of which two thirds of what was typed are the begin. One error in three letters is the most. Case
    does not count.

    >>> nearest_names("comapre", ["cores", "components", "compare"]), nearest_names("T3", ["T1", "T2"])
    (['compare'], ['T1', 'T2'])
    >>> nearest_names("roof", ["roofline", "power"]), nearest_names("bananas", ["balance"])
    (['roofline'], [])
    >>> nearest_names("launch", ["v1_launches", "v1_lines"]), nearest_names("roofs", ["roofline", "rows"])
    (['v1_launches'], ['roofline'])
    """
    import difflib  # only where a name is wrong

    wanted, names = name.casefold(), {one.casefold(): one for one in known}
    errors = {one: 1 for one in names if wanted and (f"_{wanted}" in f"_{one}" or _is_begin(one, wanted))}
    for one in difflib.get_close_matches(wanted, names, n=MAX_NAMED, cutoff=0.5):
        errors[one] = min(errors.get(one, len(one)), typing_errors(wanted, one))
        others = len(wanted) - _shared_letters(wanted, one)
        if 3 * others <= len(wanted):
            errors[one] = min(errors[one], 1 + others)
    fewest = min(errors.values(), default=0)
    near = sorted(one for one, count in errors.items() if count == fewest and 3 * count <= max(len(one), 3))
    return [names[one] for one in near[:most]]


def _is_begin(name: str, longer: str) -> bool:
    return longer.startswith(name) and 2 * len(name) >= len(longer)


def _shared_letters(first: str, second: str) -> int:
    """Return how many letters both begin with."""
    differ = (place for place, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)
    return next(differ, min(len(first), len(second)))


def typing_errors(typed: str, meant: str) -> int:
    """Return the letters to add, remove, replace or swap with the next one that turn one text into another.

    The optimal string alignment distance: each part is edited once.

    >>> typing_errors("comapre", "compare"), typing_errors("H20", "H200"), typing_errors("", "ab")
    (1, 1, 2)
    """
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for i, letter in enumerate(typed):
        two_before, before, row = before, row, [i + 1]
        for j, other in enumerate(meant):
            row.append(min(row[j] + 1, before[j + 1] + 1, before[j] + (letter != other)))
            if i and j and letter == meant[j - 1] and typed[i - 1] == other:
                row[-1] = min(row[-1], two_before[j - 1] + 1)
    return row[-1]


def wrong_cell_count(cells: int, needed: object) -> str:
    """Return the message that a row has a wrong number of cells.

    >>> wrong_cell_count(1, 3), wrong_cell_count(4, "1 or 2")
    ('it has 1 cell but needs 3', 'it has 4 cells but needs 1 or 2')
    """
    return f"it has {counted(cells, 'cell')} but needs {needed}"


def first_of(names: Iterable[str], most: int = MAX_NAMED, sign: str = ", ") -> str:
    """Return the first of several names, and how many more there are.

    >>> first_of(["a", "b"], 2), first_of(["a", "b", "c"], 2), first_of([])
    ('a, b', 'a, b and 1 more', '')
    """
    names = list(names)
    return sign.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(count: int | str, what: str) -> str:
    """Return how many there are of something, as words; ``count`` may be a number as it is shown.

    >>> counted(1, "launch"), counted(0, "sample"), counted("12,000", "query"), counted(f"{1.0:g}", "SM")
    ('1 launch', '0 samples', '12,000 queries', '1 SM')
    """
    if str(count) == "1":
        return f"1 {what}"
    if what.endswith("y"):
        return f"{count} {what[:-1]}ies"
    return f"{count} {what}{'es' if what.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def without_password(text: str) -> str:
    """Return the value of a user that names a store, without its passwords if it is a URL.

    >>> without_password("postgresql://me:a/b@host/db?password=c&sslpassword=d"), without_password("a:b@c.sqlite")
    ('postgresql://me:***@host/db?password=***&sslpassword=***', 'a:b@c.sqlite')
    """
    scheme, found, rest = text.partition("://")
    if not found:
        return text
    rest = _PASSWORD.sub(r"\1:***@", rest, count=1)
    return f"{scheme}://" + _QUERY_PASSWORD.sub(r"\1***", rest)
