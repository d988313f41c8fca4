"""Which kernel of one run is which of another: as the user says, by the same name, by the same short name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from profsvc.errors import NotFoundError
from profsvc.kernel_names import matching_kernels, short_kernel_name

MAPPED, NAME, SHORT_NAME = "map", "name", "short name"


class Match(NamedTuple):
    """A kernel before and after, and how the two were found to be the same."""

    before: str
    after: str
    by: str


def match_kernels(before: Sequence[str], after: Sequence[str], mapped: Mapping[str, str] | None = None) -> list[Match]:
    """Pair the kernels of two runs, in the order of ``before``; a kernel has one partner or none.

    The surer way comes first, and a short name that several kernels of a run have pairs none of them. ``mapped`` says
    old=new, by full or by short name. Raise `NotFoundError` if it names no kernel of its run.

    >>> match_kernels(["k<1>(int)", "a()", "b()"], ["void k<2>(long)", "a()", "c()"], {"b": "c"})
    ... # doctest: +NORMALIZE_WHITESPACE
    [Match(before='k<1>(int)', after='void k<2>(long)', by='short name'),
     Match(before='a()', after='a()', by='name'), Match(before='b()', after='c()', by='map')]
    """
    left, right = dict.fromkeys(before), dict.fromkeys(after)
    found = [
        Match(_single_kernel(old, left), _single_kernel(new, right), MAPPED) for old, new in (mapped or {}).items()
    ]
    for by, reduced in ((MAPPED, None), (NAME, str), (SHORT_NAME, short_kernel_name)):
        if reduced is not None:
            olds, news = _unique_names(left, reduced), _unique_names(right, reduced)
            found += [Match(olds[name], news[name], by) for name in olds if name in news]
        for match in found:
            left.pop(match.before, None)
            right.pop(match.after, None)
    place = {kernel: number for number, kernel in enumerate(before)}
    return sorted(found, key=lambda match: place[match.before])


def _single_kernel(name: str, kernels: Iterable[str]) -> str:
    """Return the one kernel that is called so."""
    found = matching_kernels(name, kernels)
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFoundError(f"{name!r} is the name of {len(found)} kernels, {', '.join(found)}; give a full name")
    raise NotFoundError.near("kernel", name, {short_kernel_name(kernel) for kernel in kernels})


def _unique_names(kernels: Iterable[str], reduced: Callable[[str], str]) -> dict[str, str]:
    """Reduced name -> kernel, for the names that one kernel has."""
    groups: dict[str, list[str]] = {}
    for kernel in kernels:
        groups.setdefault(reduced(kernel), []).append(kernel)
    return {name: group[0] for name, group in groups.items() if len(group) == 1}
