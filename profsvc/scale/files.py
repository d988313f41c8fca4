"""Which files are one run: each file its own, or all of a folder; a run is named after where its files lie."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline.ingestion.folder_files import files_in

FILE, FOLDER = "file", "folder"


class FileGroup(NamedTuple):
    """The files of one run in the order in which they are stored, and the number of the run if it is new."""

    run: str
    files: tuple[str, ...]
    number: int | None = None


def group_files(paths: Sequence[str], by: str = FILE) -> list[FileGroup]:
    """Return the files by run, in the order of the paths; folders are searched, hidden files are left out.

    With ``by`` file a run is named after its file without suffixes, and by folder after the folder; both begin below
    the path that was given. Files of one name with other suffixes are one run, because they are of one execution.
    """
    if by not in (FILE, FOLDER):
        raise UsageError(f"runs are made by {FILE} or by {FOLDER}, not by {by!r}")
    found: dict[str, dict[str, None]] = {}
    for text in paths:
        path = Path(text)
        if not path.exists():
            raise NotFoundError(f"no file {text!r}; give an existing file or folder")
        for file in files_in(path):
            found.setdefault(_run_of(path, file, by), {})[str(file.absolute())] = None
    if not found:
        raise NotFoundError(f"no files in {', '.join(paths)}")
    return [FileGroup(run, tuple(files)) for run, files in found.items()]


def _run_of(given: Path, file: Path, by: str) -> str:
    """Name the run of a file that was found in a path that was ``given``."""
    inside = file.relative_to(given) if given.is_dir() else Path(file.name)
    folders = list(inside.parts[:-1])
    if by == FOLDER:
        name = "/".join(folders) or (given if given.is_dir() else given.absolute().parent).resolve().name or "run"
    else:
        name = "/".join([*folders, inside.name.split(".")[0] or "run"])
    return readable(name)


def readable(name: str) -> str:
    r"""Return the name of a file with bytes that are not UTF-8 as escapes.

    >>> readable(os.fsdecode(b"bad\xff"))
    'bad\\xff'
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")
