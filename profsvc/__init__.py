"""profsvc: GPU profiles and power logs in; bottlenecks, potential speedups and changes out.

The layers, highest first. Imports point down only, and packages of one layer do not import each other::

    9  cli | pytest_plugin                       the command line; it starts the service too. The fixture of pytest
    8  mcp                                       tools for assistants over the Model Context Protocol
    7  web | api                                 the service: HTTP API and pages. A store with the client's methods
    6  views | scheduler | client                answers to questions, scheduled jobs, access to a service
    5  pipeline | recording                      from an upload to stored results; programs run under profilers
    4  formats | store | reports | channels      readers, SQL, text and plots, notifications
    3  analysis                                  result tables from input tables; no input or output
    2  tables | specs | workers                  data tables of the field, and limited processes
    1  formulas                                  pure functions of numbers
    0  errors
"""

from importlib import import_module
from typing import Any

_PUBLIC = ("open",)


def __getattr__(name: str) -> Any:
    """Load `profsvc.api` when it is used: the command line does without it."""
    if name in _PUBLIC:
        return getattr(import_module("profsvc.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
