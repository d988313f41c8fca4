"""Texts of source lines from a folder, where a source page names lines without their text."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from profsvc.errors import NotFoundError

MAX_FILE_BYTES = 16 << 20
MAX_TEXT_CHARS = 2000


def add_source_texts(view: Mapping[str, Any], folder: Path) -> list[str]:
    """Add missing texts to the lines of a view; return the files that are not in the folder.

    The paths come from a file of unknown origin, so only files inside the folder are read.
    """
    if not folder.is_dir():
        raise NotFoundError(f"{folder} is not a folder; give the one with the source files")
    texts: dict[str, list[str] | None] = {}
    for line in view["lines"]:
        if line["source_text"] is not None or not line["file"] or not line["source_line"]:
            continue
        if line["file"] not in texts:
            texts[line["file"]] = _lines_of(line["file"], folder)
        found = texts[line["file"]]
        if found is not None and line["source_line"] <= len(found):
            line["source_text"] = found[line["source_line"] - 1].strip()[:MAX_TEXT_CHARS]
    return [name for name, found in texts.items() if found is None]


def _lines_of(name: str, folder: Path) -> list[str] | None:
    """Return the lines of the file with the longest common end of its path."""
    path = PureWindowsPath(name) if "\\" in name else PurePosixPath(name)
    parts = [part for part in path.parts if part not in ("..", ".", path.anchor)]
    root = folder.resolve()
    for begin in range(len(parts)):
        try:
            file = root.joinpath(*parts[begin:]).resolve()
            if file.is_relative_to(root) and file.is_file() and file.stat().st_size <= MAX_FILE_BYTES:
                # A compiler ends lines at line feeds alone, not at form feeds or other separators.
                return file.read_text(encoding="utf-8-sig", errors="replace").split("\n")
        except (OSError, ValueError):  # too long, or with characters that no path has
            continue
    return None
