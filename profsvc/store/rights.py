"""Rights to the files that a store makes: its owner's alone, who may give more."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

OWN = 0o600


def own(file: Path) -> None:
    """Make a file that is not there yet, for its owner alone: SQLite would let everybody read it."""
    with suppress(OSError):  # SQLite says better what is wrong
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWN))


def before_connect(_dialect: Any, _record: Any, arguments: Any, _options: Any) -> None:
    """Make the file that an engine is about to open."""
    own(Path(arguments[0]))
