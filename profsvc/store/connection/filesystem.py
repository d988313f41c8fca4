"""The file system under a SQLite store, and the journal that is safe on it."""

import sqlite3
from pathlib import Path

# Local file systems, where the processes of a write-ahead log really share its memory.
LOCAL_FILE_SYSTEMS = {
    *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "reiserfs", "nilfs2"),
    *("tmpfs", "ramfs", "overlay"),
}


MOUNTINFO = Path("/proc/self/mountinfo")


def wal_is_safe(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Return whether this SQLite never loses a committed row with a write-ahead log.

    Earlier releases could lose one when two connections wrote and checkpointed at the same time.

    >>> wal_is_safe((3, 40, 1)), wal_is_safe((3, 44, 6)), wal_is_safe((3, 51, 2)), wal_is_safe((3, 51, 3))
    (False, True, False, True)
    """
    return version >= (3, 51, 3) or any(v <= version < (3, v[1] + 1) for v in ((3, 44, 6), (3, 50, 7)))


def file_system(path: Path, mounts: Path = MOUNTINFO) -> str | None:
    """Return the file system of ``path``, such as ext4 or nfs4; None if the system does not report it.

    >>> file_system(Path("/proc/self")) in {"proc", None}
    True
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    where, found, longest = path.resolve(), None, -1
    for line in lines:
        fields, _, about = line.partition(" - ")
        mounted = Path(fields.split()[4].replace("\\040", " "))
        depth = len(mounted.parts)
        # Of two mounts at one path the later hides the earlier.
        if depth >= longest and where.is_relative_to(mounted):
            found, longest = about.split()[0], depth
    return found


def journal_of(file: Path) -> str:
    """Return the journal mode for a store in this file: ``wal`` if safe, else ``delete``."""
    return "wal" if wal_is_safe() and file_system(file) in LOCAL_FILE_SYSTEMS else "delete"
