"""Labels of kernels: short names, extended where several kernels share one."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from profsvc.kernel_names import name_digest, short_kernel_name, with_template_arguments

MAX_LABEL_CHARS = 60
"""Maximum characters of an extended label; short names may be longer."""
_WORD_AT_END = re.compile(r"\w*$")
_WORD_AT_START = re.compile(r"^\w*")


def labels(kernels: Iterable[str]) -> dict[str, str]:
    """Return a unique label for each full name: the short name, unless several kernels share it.

    Those get their template arguments, shortened to the differing part, or their full names if that is not enough.

    >>> list(labels(["void gemm<16>(float *)", "void gemm<(int)32>(float *)", "saxpy(int)"]).values())
    ['gemm<16>', 'gemm<(int)32>', 'saxpy']
    """
    found: dict[str, str] = {}
    alike = defaultdict(list)
    for name in dict.fromkeys(kernels):
        alike[short_kernel_name(name)].append(name)
    for short, names in alike.items():
        found |= {names[0]: short} if len(names) == 1 else _apart(short, names)
    return found


def labelled(
    rows: Sequence[Mapping[str, Any]], shown: str = "kernel", full: str = "kernel_full"
) -> list[dict[str, Any]]:
    """Return rows of one table with unique labels of their kernels in the column ``shown``.

    >>> [row["kernel"] for row in labelled([{"kernel_full": f"gemm<{size}>(int)"} for size in (16, 32)])]
    ['gemm<16>', 'gemm<32>']
    """
    label = labels(str(row[full]) for row in rows)
    return [{**row, shown: label[str(row[full])]} for row in rows]


def _apart(short: str, names: list[str]) -> dict[str, str]:
    whole = {name: with_template_arguments(name) for name in names}
    if len(set(whole.values())) < len(names):
        whole = {name: name for name in names}
    if max(map(len, whole.values())) > MAX_LABEL_CHARS:
        whole = _differing(short, whole)
    return whole


def _differing(short: str, whole: Mapping[str, str]) -> dict[str, str]:
    """Remove common prefixes and suffixes; if that is not enough, add a digest."""
    texts = list(whole.values())
    head = len(_WORD_AT_END.sub("", _begin_alike(texts)))
    tail = len(_WORD_AT_START.sub("", _begin_alike([text[head:][::-1] for text in texts])[::-1]))
    cut = {name: f"{short}<\u2026{text[head : len(text) - tail]}\u2026>" for name, text in whole.items()}
    return {
        name: text if len(text) <= MAX_LABEL_CHARS else f"{short[: MAX_LABEL_CHARS - 12]}<\u2026> {name_digest(name)}"
        for name, text in cut.items()
    }


def _begin_alike(texts: Iterable[str]) -> str:
    """Return the common prefix of all texts."""
    return "".join(signs[0] for signs in takewhile(lambda signs: len(set(signs)) == 1, zip(*texts, strict=False)))


def subject_label(row: Mapping[str, Any], known: Mapping[str, str]) -> str:
    """Return the subject of a finding, with the label of its kernel from ``known`` and its branch, if it has one.

    >>> row = {"kernel": "void gemm<16>(float *)", "subject": "gemm (2)"}
    >>> subject_label(row, {row["kernel"]: "gemm<16>"})
    'gemm<16> (2)'
    >>> subject_label(row | {"branch": "faster"}, {row["kernel"]: "gemm<16>"})
    'gemm<16> (2) on branch faster'
    """
    subject, kernel = str(row["subject"]), row["kernel"]
    short = short_kernel_name(kernel) if kernel else ""
    if short and subject.startswith(short):
        subject = known.get(kernel, short) + subject.removeprefix(short)
    return f"{subject} on branch {row['branch']}" if row.get("branch") else subject
