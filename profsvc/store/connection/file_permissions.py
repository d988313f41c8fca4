"""Permissions of the files of a store: only for the owner, who may grant more."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

PRIVATE_MODE = 0o600


def create_private(file: Path) -> None:
    """Create a missing file for its owner only, because SQLite would make it readable for all users."""
    with suppress(OSError):  # SQLite reports the problem better
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE))


def before_connect(_dialect: Any, _record: Any, arguments: Any, _options: Any) -> None:
    """Create the file that an engine will open."""
    create_private(Path(arguments[0]))
