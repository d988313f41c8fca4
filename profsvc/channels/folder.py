"""A folder as a channel: the whole report in each form that was asked for, a file each."""

import os
import re
import tempfile
from pathlib import Path

from profsvc.channels.configuration import Channel
from profsvc.channels.message import Message, to_valid_unicode
from profsvc.errors import ServiceError


def send(message: Message, channel: Channel) -> str:
    """Write the files, each whole or not at all, and return where they are; the same report replaces its own."""
    folder = Path(channel.options["folder"])
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", message.stem).strip("-")[:100] or "report"
    names = [f"{stem}.{form}" for form in channel.options["forms"] if form in message.forms]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            _write(folder, name, to_valid_unicode(message.forms[name.rpartition(".")[2]]))
    except OSError as error:
        raise ServiceError(f"{folder} cannot store the report: {error.strerror}") from None
    return f"{folder}: {', '.join(names)}"


def _write(folder: Path, name: str, text: str) -> None:
    handle, aside = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
        Path(aside).chmod(0o644)
        Path(aside).replace(folder / name)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
