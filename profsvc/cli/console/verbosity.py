"""How much is printed to stderr: only errors, messages, or more of them."""

from profsvc.errors import UsageError

QUIET, NORMAL, VERBOSE = -1, 0, 1
level = NORMAL


def set_verbosity(quiet: bool, verbose: bool, *, reset: bool = False) -> None:
    """Set how much is printed; without ``reset``, options that are not given change nothing."""
    global level
    if quiet and verbose:
        raise UsageError("--quiet and --verbose exclude each other; give one of them")
    if reset or quiet or verbose:
        level = QUIET if quiet else VERBOSE if verbose else NORMAL
