"""The layers of the package, read from its docstring: the one map, which tests hold and the documentation draws."""

import re
from typing import NamedTuple

import profsvc


class Layer(NamedTuple):
    """Parts that do not import each other, and what they are for."""

    parts: tuple[str, ...]
    about: str


LAYERS = [  # highest first
    Layer(tuple(names.split(" | ")), about)
    for names, about in re.findall(r"^ {4}[0-9]  (\S+(?: [|] \S+)*) {2,}(.+)$", profsvc.__doc__ or "", re.MULTILINE)
]
