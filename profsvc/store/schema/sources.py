"""What the views are made of: the files of this program that decide their SQL and their meanings.

To make the SQL of all views, only to see that a store has them, takes longer than most questions. To read these files
does not. So a store keeps their fingerprint beside that of the views.
"""

import zlib
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
SCHEMA = Path(__file__).parent
OTHER_FILES = ("data/metrics/counters.csv", "specs/metrics/vocabulary.py", "specs/table_files.py", "tables/schemas.py")
"""Files that decide the views too; `tests/store/schema/test_sources.py` finds out which."""


def files() -> list[Path]:
    """Return the files that decide the SQL of the views."""
    return [*sorted(SCHEMA.rglob("*.py")), *(PACKAGE / name for name in OTHER_FILES)]


def fingerprint(paths: Iterable[Path]) -> str:
    """Return the size and the CRC of each file; empty if one is missing, as where only compiled modules are installed.

    A hash of `hashlib` would need the library of OpenSSL, which takes longer to load than all these files.
    """
    try:
        contents = [path.read_bytes() for path in paths]
    except OSError:
        return ""
    return " ".join(f"{len(content):x}.{zlib.crc32(content):x}" for content in contents)


SOURCES = fingerprint(files())
"""The fingerprint when this package was first imported, which is before any module that makes the views."""


def are_as_imported() -> bool:
    """Return whether the files still have the contents that were imported, and not those of another version."""
    return bool(SOURCES) and fingerprint(files()) == SOURCES
