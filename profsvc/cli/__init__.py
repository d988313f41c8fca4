"""The command line: data goes to stdout, messages go to stderr. Each module holds one group of commands."""

from profsvc.cli.application import app, main

__all__ = ["app", "main"]
