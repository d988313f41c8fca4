"""pandas and Arrow, which are imported when something of them is first used.

Long files are read and stored as whole columns, without frames, and the two libraries take 100 MB of memory. So nothing
on that way imports them itself: it takes ``pd`` and ``pa`` from here, and postpones its annotations.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pa", "pd"]


class _Library:
    """Stands for a library; ``parts`` are submodules that it does not import itself."""

    def __init__(self, name: str, *parts: str) -> None:
        self._names = name, *(f"{name}.{part}" for part in parts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # such as what doctest and inspect ask of every object
            raise AttributeError(name)
        library, *_ = [import_module(name) for name in self._names]
        found = getattr(library, name)
        setattr(self, name, found)  # which is found without this function from now on
        return found


if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
else:
    pd, pa = _Library("pandas"), _Library("pyarrow", "compute", "csv")
