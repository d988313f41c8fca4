"""Kernels of libraries, known by their names, and what their callers can do, who do not write them."""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from profsvc.specs.advice.causes import causes
from profsvc.specs.table_files import rows_of

FILE, STEPS = "advice/libraries.csv", "advice/caller_steps.csv"
_RETURN_TYPE = re.compile(r"^(?:void|static|__global__)\s+")


def read_libraries(text: str | None = None) -> Mapping[str, re.Pattern[str]]:
    """Read ``libraries.csv``: of each library a pattern that its kernels have, whose example must fit it first."""
    found: dict[str, re.Pattern[str]] = {}
    for row in rows_of(FILE, ("library", "pattern", "example"), text):
        try:
            found[row["library"]] = re.compile(row["pattern"])
        except re.error as error:
            raise row.wrong(f"pattern {row['pattern']!r} is no regular expression: {error}") from None
        if not found[row["library"]].search(row["example"]):
            raise row.wrong(f"the example {row['example']!r} does not fit the pattern")
    return MappingProxyType(found)


def read_caller_steps(text: str | None = None) -> Mapping[str, str]:
    """Read ``caller_steps.csv``: of a flaw of ``causes.toml`` what the caller of its kernel can do."""
    flaws = [name for name, cause in causes().items() if cause.kind == "flaw"]
    return MappingProxyType(
        {row.one_of("cause", flaws): row["step"] for row in rows_of(STEPS, ("cause", "step"), text)}
    )


@cache
def _libraries() -> Mapping[str, re.Pattern[str]]:
    return read_libraries()


@cache
def _caller_steps() -> Mapping[str, str]:
    return read_caller_steps()


def library_of(kernel: str) -> str | None:
    """Return the library that a kernel is of, by its full name; None for a kernel of the user's own.

    >>> library_of("void at::native::vectorized_elementwise_kernel<(int)4>(int)"), library_of("void saxpy(float *)")
    ('PyTorch', None)
    """
    name = _RETURN_TYPE.sub("", kernel)
    return next((library for library, pattern in _libraries().items() if pattern.search(name)), None)


def first_step_of(cause: str, library: str | None) -> str:
    """Return the first step against a cause: of a library's kernel what its caller can do, where that is known.

    >>> first_step_of("thread_divergence", "PyTorch")
    "Group equal cases before the call: sort by length or by kind (this kernel is PyTorch's)."
    >>> first_step_of("launch_overhead", "PyTorch") == first_step_of("launch_overhead", None)
    True
    """
    step = _caller_steps().get(cause)
    if library is None or step is None:
        return causes()[cause].first_step
    return f"{step[:1].upper()}{step[1:-1]} (this kernel is {library}'s)."
