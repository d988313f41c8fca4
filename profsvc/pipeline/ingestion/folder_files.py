"""What a folder holds: files, and what is not read and why."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def files_in(path: Path) -> Iterator[Path]:
    """Yield a file, or what a folder and its subfolders hold in the order of the names, without hidden files.

    Links to nothing, links to folders, folders that cannot be listed and pipes are among them: `refusal` tells why they
    are not read. Links to folders are not followed, as they may lead around in a circle.
    """
    if not path.is_dir():
        yield path
        return
    unlisted: list[OSError] = []
    found: list[Path] = []
    for place, folders, names in os.walk(path, onerror=unlisted.append):
        here = Path(place)
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [here / name for name in folders if (here / name).is_symlink()]
        found += [here / name for name in names if not name.startswith(".")]
    yield from sorted([*found, *(Path(error.filename) for error in unlisted)])


def refusal(path: Path) -> str | None:
    """Return why a path found in a folder is not read; opening what is not a regular file may never end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return (
            f"it is a link to '{path.readlink()}', which is not there; remove or mend the link"
            if path.is_symlink()
            else "it is gone"
        )
    except OSError as error:
        return f"it cannot be read: {error.strerror}; give yourself the right to read it"
    if stat.S_ISDIR(mode):
        if path.is_symlink():
            return "it is a link to a folder, which is not followed; give that folder itself to read its files"
        return "its files cannot be listed; give yourself the right to read and enter this folder"
    if not stat.S_ISREG(mode):
        return "it is a pipe, a socket or a device, not a file; to read a pipe, give its name to profsvc upload"
    return None
