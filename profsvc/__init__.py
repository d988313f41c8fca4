"""profsvc: GPU profiles and power logs in; bottlenecks, potential speedups and changes out.

The layers, highest first. Imports point down only, and packages of one layer do not import each other::

    9  cli | pytest_plugin                                             the command line, the fixture of pytest
    8  mcp                                                             tools for assistants
    7  web | api                                                       HTTP API and pages, the same methods on a store
    6  views | scheduler | scale | client                              answers, jobs, many files at once, HTTP client
    5  pipeline | recording                                            from an upload to results, runs under profilers
    4  formats | store | reports | channels | microbench | settings    readers, SQL, text and plots, what is sent
    3  analysis                                                        result tables from input tables, no I/O
    2  tables | specs | kernel_names | docs | workers                  the field as data, words, limited processes
    1  formulas                                                        pure functions of numbers
    0  errors                                                          exit codes and HTTP status
"""

from importlib import import_module
from typing import Any

_PUBLIC = ("open",)


def __getattr__(name: str) -> Any:
    """Load `profsvc.api` when it is used: the command line does without it."""
    if name in _PUBLIC:
        return getattr(import_module("profsvc.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
