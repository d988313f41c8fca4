"""Which kernels a name means: as a tool prints it, short, with its template arguments, or as a page cuts it."""

import hashlib
import re
from collections.abc import Iterable

from profsvc.tables import PARAMETERS, short_kernel_name

CUT = "\u2026"
_CAST = re.compile(r"\((?:(?:un)?signed |std::)?[A-Za-z_][\w ]*\)(?=-?[\w'])|\s+")
_DIGEST = re.compile(r"(.*) ([0-9a-f]{8})")


def with_arguments(kernel: str) -> str:
    """Return a name with its template arguments, without return type, parameters and name spaces.

    >>> with_arguments("std::enable_if<!T7, void>::type ns::kernel<int, ns::P<4>>(T13)")
    'kernel<int, ns::P<4>>'
    """
    text = PARAMETERS.sub("", kernel.replace("(anonymous namespace)::", "")).strip()
    start = depth = 0
    for place, sign in enumerate(text):
        depth = max(0, depth + (sign == "<") - (sign == ">"))
        if depth == 0 and sign in " :":
            start = place + 1
    return text[start:] or kernel


def digest_of(kernel: str) -> str:
    """Return the eight letters that stand behind a label which is too long to tell its kernel from others."""
    return hashlib.sha256(kernel.encode("utf-8", "backslashreplace")).hexdigest()[:8]


def _bare(text: str) -> str:
    """Leave out spaces, and casts of template arguments, which some demanglers print.

    >>> _bare("gemm<(int)32, (bool)1>"), _bare("gemm<32, 1>")
    ('gemm<32,1>', 'gemm<32,1>')
    """
    return _CAST.sub("", text)


def called(name: str, kernels: Iterable[str]) -> list[str]:
    """Return those of the kernels, by full names, that a name means: in full, else short, else as pages print it.

    >>> both = ["void gemm<(int)16>(float *)", "void gemm<(int)32>(float *)"]
    >>> called("gemm<32>", both) == called("gemm<\u202632\u2026>", both) == both[1:], len(called("gemm", both))
    (True, 2)
    """
    known = list(dict.fromkeys(kernels))
    bare, digest = _bare(name), _DIGEST.fullmatch(name)
    for fits in (
        lambda kernel: kernel == name,
        lambda kernel: short_kernel_name(kernel) == name,
        lambda kernel: with_arguments(kernel) == name,
        lambda kernel: bare in (_bare(with_arguments(kernel)), _bare(kernel)),
    ):
        if found := [kernel for kernel in known if fits(kernel)]:
            return found
    if CUT not in name:
        return []
    begin, *parts = (digest[1] if digest else name).split(CUT)
    pattern = re.compile(".*".join(map(re.escape, [begin, *parts])), re.DOTALL)
    return [
        kernel
        for kernel in known
        if (digest is None or digest_of(kernel) == digest[2])
        and any(pattern.fullmatch(text) for text in (kernel, with_arguments(kernel)))
    ]


def begin_of(name: str) -> str:
    """Return what the short name of each kernel begins with that a name can mean.

    >>> begin_of("void ns::gemm<32>(float *)"), begin_of("ns::gemm<\u202632\u2026>"), begin_of("reduc\u2026rgent")
    ('gemm', 'gemm', 'reduc')
    """
    first = name.partition("<")[0].partition(CUT)[0]
    return short_kernel_name(name) if CUT not in name else first.split(" ")[-1].split("::")[-1]
