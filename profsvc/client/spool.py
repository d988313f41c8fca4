"""Uploads queued while a service is unreachable: files in a folder that several processes share.

::

    <time>-<random>.data   the bytes
    <time>-<random>.json   what they are and where they go; an entry is there when this is
    <time>-<random>.sent   an entry that the service has, on its way out
    refused/, damaged/     entries that cannot be sent, with why; nothing is removed that is not stored

Who sends an entry holds a lock on its ``.json``, which the kernel frees when the process ends, however it ends. So no
entry waits for one that was killed. Where there are no such locks two may send one entry: the service stores it once.
"""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

from profsvc.client import protocol
from profsvc.errors import (
    InputError,
    NotFoundError,
    OverloadedError,
    ProfsvcError,
    ServerAwayError,
    TokenError,
    UsageError,
)

fcntl: Any
try:
    import fcntl
except ImportError:  # the service alone tells what came twice
    fcntl = None

DATA_SUFFIX, ENTRY_SUFFIX, SENT_SUFFIX = ".data", ".json", ".sent"
Send = Callable[[BinaryIO, Mapping[str, Any]], dict[str, Any]]


class SpooledUpload(NamedTuple):
    """An upload that waits: its entry in the folder, the address it goes to, and the questions of its upload."""

    path: Path
    url: str
    params: dict[str, Any]

    @property
    def data(self) -> Path:
        """Where its bytes are."""
        return self.path.with_suffix(DATA_SUFFIX)


class DamagedEntryError(Exception):
    """An entry that cannot be read, or whose bytes are not those that were kept."""


class Spool:
    """A folder of queued uploads."""

    def __init__(self, folder: Path) -> None:
        """Take a folder, which need not be there."""
        self.folder = folder

    def keep(self, stream: BinaryIO, url: str, params: Mapping[str, Any]) -> Path:
        """Keep an upload: when this returns, its bytes and what they are have reached the disk. Return the bytes."""
        new = not self.folder.is_dir()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{time.time_ns():020d}-{secrets.token_hex(4)}{ENTRY_SUFFIX}"
        stream.seek(0)
        with path.with_suffix(DATA_SUFFIX).open("xb") as file:
            shutil.copyfileobj(stream, file, protocol.CHUNK_BYTES)
            _flush(file)
        _write_entry(path, {"url": url, "params": dict(params)})
        if new:
            _sync_folder(self.folder.parent)
        return path.with_suffix(DATA_SUFFIX)

    def entries(self) -> list[Path]:
        """Return what waits, oldest first; what was sent and not yet removed, as its sender was killed, goes."""
        for sent in self.folder.glob(f"*{SENT_SUFFIX}"):
            _remove(sent)
        return sorted(self.folder.glob(f"*{ENTRY_SUFFIX}"))

    @contextmanager
    def claimed(self, path: Path) -> Iterator[bool]:
        """Tell whether an entry exists and no other process is sending it; it stays claimed until the end."""
        try:
            file = path.open("rb")
        except FileNotFoundError:
            yield False
            return
        with file:
            yield _try_lock(file) and _still_exists(file, path)

    def read(self, path: Path) -> SpooledUpload:
        """Read an entry; raise `DamagedEntryError` if it is none."""
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            return SpooledUpload(path, str(said["url"]), dict(said["params"]))
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedEntryError(f"the entry {path.name} cannot be read ({type(error).__name__}: {error})") from None

    def opened(self, entry: SpooledUpload) -> BinaryIO:
        """Open the bytes of an entry; raise `DamagedEntryError` if they are not those that were kept."""
        try:
            stream = entry.data.open("rb")
        except FileNotFoundError:
            raise DamagedEntryError(f"the bytes of the entry {entry.path.name} are missing") from None
        if (wanted := entry.params.get("sha256")) and protocol.sha256_of(stream) != wanted:
            stream.close()
            raise DamagedEntryError(f"the bytes of the entry {entry.path.name} are others than were kept")
        return stream

    def done(self, path: Path) -> None:
        """Remove an entry that the service has stored."""
        sent = path.with_suffix(SENT_SUFFIX)
        with suppress(FileNotFoundError):
            path.replace(sent)
        _remove(sent)

    def put_aside(self, path: Path, where: str, why: str) -> Path:
        """Move an entry that cannot be sent to a folder beside, with the reason; return where its bytes are now."""
        aside = self.folder / where
        aside.mkdir(mode=0o700, exist_ok=True)
        try:
            entry = self.read(path)
            said: dict[str, Any] = {"url": entry.url, "params": entry.params}
        except DamagedEntryError:
            said = {"entry": path.read_bytes().decode("utf-8", "replace")}
        _write_entry(aside / path.name, said | {where: why})
        data = path.with_suffix(DATA_SUFFIX)
        with suppress(FileNotFoundError):
            data.replace(aside / data.name)
        path.unlink(missing_ok=True)
        return aside / data.name

    def send_all(self, url: str, send: Send, answers: Callable[[], bool]) -> list[dict[str, Any]]:
        """Send what waits for an address and no other process sends; return the verdicts.

        ``answers`` tells whether the service is there, where it may be another that answered.
        """
        verdicts: list[dict[str, Any]] = []
        for path in self.entries():
            with self.claimed(path) as ours:
                if not ours:
                    continue
                try:
                    entry = self.read(path)
                    if entry.url == url:
                        verdicts.append(self._sent(entry, send, answers))
                except DamagedEntryError as error:
                    verdicts.append(self._refused(path, path.name, "damaged", str(error)))
                except (TokenError, OverloadedError, ServerAwayError) as error:
                    if not verdicts:
                        raise
                    verdicts.append(_waiting_result(entry, error))
                    break  # all others would get the same answer
        return verdicts

    def _sent(self, entry: SpooledUpload, send: Send, answers: Callable[[], bool]) -> dict[str, Any]:
        """Send an entry; return the verdict on it."""
        try:
            with self.opened(entry) as stream:
                said = send(stream, entry.params)
        except (InputError, UsageError, NotFoundError) as error:
            return self._refused(entry.path, str(entry.params.get("file_name")), "refused", str(error))
        except (TokenError, OverloadedError):
            raise
        except ServerAwayError as error:
            if not answers():
                raise
            return _waiting_result(entry, error)
        except ProfsvcError as error:
            return _waiting_result(entry, error)
        self.done(entry.path)
        return said

    def _refused(self, path: Path, name: str, where: str, why: str) -> dict[str, Any]:
        kept = self.put_aside(path, where, why)
        return {"ok": False, "file_name": name, "refused": why, "kept": str(kept)}


def _waiting_result(entry: SpooledUpload, error: ProfsvcError) -> dict[str, Any]:
    return {"ok": False, "file_name": entry.params.get("file_name"), "waits": str(entry.data), "because": str(error)}


def _try_lock(file: IO[bytes]) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without such locks
        return True
    return True


def _still_exists(file: IO[bytes], path: Path) -> bool:
    """Tell whether an open file still has its name: another process may have sent it before the lock was ours."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _remove(sent: Path) -> None:
    sent.with_suffix(DATA_SUFFIX).unlink(missing_ok=True)
    sent.unlink(missing_ok=True)


def _write_entry(path: Path, said: Mapping[str, Any]) -> None:
    """Write an entry, which appears whole, and bring its name to the disk."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(said, file)
        _flush(file)
    part.replace(path)
    _sync_folder(path.parent)


def _flush(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    with suppress(PermissionError):  # Windows opens no folder
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
