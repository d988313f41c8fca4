"""The command line, as the tests of commands call it."""

from tests.cli.conftest import cli, store_file

__all__ = ["cli", "store_file"]
