"""The domain as data: loads the tables under ``profsvc/data`` into frozen dataclasses.

There is one module per table, in the folder that the table has there; ``table_files`` opens them and names the file and
row of an error. ``metrics`` holds the counters, the labels and units of tools, and the expressions that derive counters
from a tool's metrics.
"""

import sys
from types import ModuleType

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _Package(ModuleType):
    """The package, in which a function stands before the module that has its name."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, but leave a name that is given out to what it means."""
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
