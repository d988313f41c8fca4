"""The command line of the programs below `tests`: ``--help`` prints what the docstring of the program says."""

import argparse
import sys


def parser_of(docstring: str | None) -> argparse.ArgumentParser:
    """Return a parser of arguments for the program that runs, whose help is its ``docstring``."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"python -m {spec.name.removesuffix('.__main__')}" if spec else None
    return argparse.ArgumentParser(
        prog=program, description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter
    )
