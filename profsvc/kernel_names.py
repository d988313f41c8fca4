"""Which kernels a name means: as a tool prints it, short, with its template arguments, or as a page cuts it."""

import hashlib
import re
from collections.abc import Iterable

ELLIPSIS = "\u2026"
# What compilers write behind the name of a copy that they made, and AMD's behind that of each kernel.
_CLONE = re.compile(r"(?:\s*\[clone [^\[\]]*\]|(?<=.)\.kd|\s*\(\.kd\))+\s*$")
# Operators and letters whose signs are no brackets, and where a name may end.
_SIGNS = re.compile(r"\boperator\s*(?:<=>|<<=?|>>=?|->\*?|[<>]=?|\(\)|\[\])|'\\?.'|->|::|[<>()\[\]{} ]")
_OPENERS = {">": "<", ")": "(", "]": "[", "}": "{"}
_QUALIFIERS = re.compile(r"(?:\s*(?:const|volatile|noexcept|&&?))*\s*")
_NAMESPACES = re.compile(r"(?:\b\w+|<unnamed>)::")
_CAST = re.compile(r"\((?:(?:un)?signed |std::)?[A-Za-z_][\w ]*\)(?=-?[\w'])")
_SPACES = re.compile(r"\s+")
NO_NAME = "(no name)"
_MANGLED = re.compile(r"_ZL?(?:N[rVK]*)?L?(?=\d)")
_LENGTH = re.compile(r"[1-9]\d{0,3}")
_DIGEST = re.compile(r"(.*) ([0-9a-f]{8})")


def short_kernel_name(kernel: str) -> str:
    """Return the kernel's name without return type, parameters, template arguments and name spaces.

    >>> short_kernel_name("void ns::gemm_tiled<16>(const float *, float *)")
    'gemm_tiled'
    >>> short_kernel_name("void copy<float, 4>(float const*, float*) [clone .kd]")
    'copy'
    >>> short_kernel_name("enable_if<!T7, void>::type kernel<int, Params<int>>(T13)")
    'kernel'
    >>> short_kernel_name("void ns::k(T *, U) [with T = float; U = int]"), short_kernel_name("")
    ('k', '(no name)')
    """
    text, arguments = _last_part(kernel)
    for start, end in reversed(arguments):
        text = text[:start] + text[end:]
    return text.strip() or kernel.strip() or NO_NAME


def base_name(kernel: str) -> str:
    """Return the short name of a kernel, of a mangled name too (Itanium's rules: each part has its length before it).

    >>> base_name("_ZN2ns4gemmILi32EEEvPKf"), base_name("_Z4gemmPf"), base_name("void ns::gemm<32>(float const*)")
    ('gemm', 'gemm', 'gemm')
    """
    start = _MANGLED.match(kernel)
    if not start:
        return short_kernel_name(kernel)
    name, place = "", start.end()
    while size := _LENGTH.match(kernel, place):
        place = size.end() + int(size[0])
        name = kernel[size.end() : place]
    return name or kernel


def with_template_arguments(kernel: str) -> str:
    """Return a name with its template arguments, without return type, parameters and name spaces.

    >>> with_template_arguments("std::enable_if<!T7, void>::type ns::kernel<int, ns::P<4>>(T13)")
    'kernel<int, ns::P<4>>'
    """
    return _last_part(kernel)[0] or kernel.strip() or NO_NAME


def _last_part(kernel: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the last part of a name, without its parameters, and where its template arguments begin and end in it."""
    if kernel.isidentifier():  # one part, whose signs need no look, however long it is
        return kernel, []
    text = _plain(kernel)
    breaks, groups = _outline(text)
    if groups and groups[-1][0] == "(" and _QUALIFIERS.fullmatch(text, groups[-1][2]):
        text = text[: groups[-1][1]].rstrip()
    arguments = [(first, last) for sign, first, last in groups if sign == "<" and first < len(text)]
    # A blank may stand before template arguments.
    within = {first for first, last in arguments if last == len(text)}
    ends = [place for place in breaks if place < len(text) and (place not in within or text[place - 1] == ":")]
    start = ends[-1] if ends else 0
    return text[start:], [(first - start, last - start) for first, last in arguments if first >= start]


def _outline(text: str) -> tuple[list[int], list[tuple[str, int, int]]]:
    """Return where parts of a name begin, and the bracket, begin and end of each group that no other contains.

    A group that is not closed, because the name is cut, goes on to the end.
    """
    breaks: list[int] = []
    groups: list[tuple[str, int, int]] = []
    unclosed: list[tuple[str, int]] = []
    for found in _SIGNS.finditer(text):
        sign, opener = found[0], _OPENERS.get(found[0])
        if sign in _OPENERS.values():
            unclosed.append((sign, found.start()))
        elif opener:
            # A sign inside round brackets compares: (1 > 2).
            places = [place for place, (other, _) in enumerate(unclosed) if other == opener]
            if places and (sign != ">" or places[-1] == len(unclosed) - 1):
                first = unclosed[places[-1]]
                del unclosed[places[-1] :]
                groups += [] if unclosed else [(*first, found.end())]
        elif sign in (" ", "::") and not unclosed:
            breaks.append(found.end())
    return breaks, groups + [(*first, len(text)) for first in unclosed[:1]]


def _plain(kernel: str) -> str:
    """Return a name without what compilers write behind it, such as [with T = float], and without unnamed spaces."""
    text, before = kernel.replace("(anonymous namespace)::", "").strip(), ""
    while text != before:
        before, text = text, _CLONE.sub("", text).rstrip()
        groups = _outline(text)[1]
        if groups and groups[-1][1] and groups[-1][2] == len(text) and text.startswith("[with ", groups[-1][1]):
            text = text[: groups[-1][1]].rstrip()
    return text


def name_digest(kernel: str) -> str:
    """Return the eight letters that stand behind a label which is too long to tell its kernel from others."""
    return hashlib.sha256(kernel.encode("utf-8", "backslashreplace")).hexdigest()[:8]


def printed_name(kernel: str) -> str:
    """Return a name as Nsight Compute prints it: without the casts of template arguments, which its report has.

    >>> printed_name("void ns::gemm<(int)32, (bool)1>(float (*)(int), int)")
    'void ns::gemm<32, 1>(float (*)(int), int)'
    """
    return _CAST.sub("", kernel)


def without_casts(text: str) -> str:
    """Leave out spaces, and casts of template arguments, which some demanglers print.

    >>> without_casts("gemm<(int)32, (bool)1>"), without_casts("gemm<32, 1>")
    ('gemm<32,1>', 'gemm<32,1>')
    """
    return _SPACES.sub("", _CAST.sub("", text))


def without_namespaces(text: str) -> str:
    """Leave out namespaces as well, of which pages of one report print some and leave out others.

    >>> without_namespaces("void at::native::copy<(int)4, at::native::Fill>"), without_namespaces("copy<4, at::Fill>")
    ('voidcopy<4,Fill>', 'copy<4,Fill>')
    """
    return _SPACES.sub("", _NAMESPACES.sub("", _CAST.sub("", text)))


def matching_kernels(name: str, kernels: Iterable[str]) -> list[str]:
    """Return those of the kernels, by full names, that a name means: in full, else short, else as pages print it.

    >>> both = ["void gemm<(int)16>(float *)", "void gemm<(int)32>(float *)"]
    >>> matching_kernels("gemm<32>", both) == matching_kernels("gemm<\u202632\u2026>", both) == both[1:]
    True
    >>> len(matching_kernels("gemm", both))
    2
    """
    known = list(dict.fromkeys(kernels))
    bare, digest = without_casts(name), _DIGEST.fullmatch(name)
    for fits in (
        lambda kernel: kernel == name,
        lambda kernel: short_kernel_name(kernel) == name,
        lambda kernel: with_template_arguments(kernel) == name,
        lambda kernel: bare in (without_casts(with_template_arguments(kernel)), without_casts(kernel)),
    ):
        if found := [kernel for kernel in known if fits(kernel)]:
            return found
    if ELLIPSIS not in name:
        return []
    begin, *parts = (digest[1] if digest else name).split(ELLIPSIS)
    pattern = re.compile(".*".join(map(re.escape, [begin, *parts])), re.DOTALL)
    return [
        kernel
        for kernel in known
        if (digest is None or name_digest(kernel) == digest[2])
        and any(pattern.fullmatch(text) for text in (kernel, with_template_arguments(kernel)))
    ]


def short_name_prefix(name: str) -> str:
    """Return what the short name of each kernel begins with that a name can mean.

    >>> short_name_prefix("void ns::gemm<32>(float *)"), short_name_prefix("ns::gemm<\u202632\u2026>")
    ('gemm', 'gemm')
    >>> short_name_prefix("reduc\u2026rgent")
    'reduc'
    """
    first = name.partition("<")[0].partition(ELLIPSIS)[0]
    return short_kernel_name(name) if ELLIPSIS not in name else first.split(" ")[-1].split("::")[-1]
