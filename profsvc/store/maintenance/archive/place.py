"""The place of an archive: a folder, or a URL such as s3://bucket/profsvc, which fsspec opens."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from profsvc.errors import ServiceError, UsageError
from profsvc.store.ingest.blob_store import sync_folder

# Their folders are a part of names, and making one would make a bucket where its name is misspelled.
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs"}
_ONE_SLASH = re.compile(r"[a-z][a-z0-9+.-]+:/?[^/]")
# What to do about an error of an object store, by a part of its text or of the name of its class.
ADVICE = {
    "credentials": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "bucket does not exist": "create the bucket, or correct its name",
    "Access": "the key lacks the right to read and write there",
    "Forbidden": "the key lacks the right to read and write there",
    "connect": "the server does not answer; check the network and AWS_ENDPOINT_URL",
}


class Place(NamedTuple):
    """A folder, or a file system of fsspec with a path in it."""

    address: str
    root: str
    remote: Any = None


def open_place(address: str) -> Place:
    """Return the place with this address; raise `ServiceError` if what its URL needs is not installed."""
    if "://" not in address:
        if _ONE_SLASH.match(address):
            raise UsageError(f"{address!r} is neither a folder nor a URL; write it as s3://bucket/folder or ./folder")
        folder = str(Path(address).absolute())
        return Place(folder, folder)
    scheme = address.partition("://")[0]
    try:
        import fsspec

        remote, root = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        extra = "s3" if scheme in {"s3", "s3a"} else "archive"
        raise ServiceError(f"{address} cannot be opened ({error}); run: pip install 'profsvc[{extra}]'") from None
    return Place(address.rstrip("/"), str(root).rstrip("/"), remote)


@contextmanager
def _told(place: Place, path: str) -> Iterator[None]:
    """Turn an error of the disk or the network into one that names the file."""
    try:
        yield
    except ServiceError:
        raise
    except Exception as error:  # what a file system of fsspec raises is not fixed
        if isinstance(error, OSError) or place.remote is not None:
            said = " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
            advice = next((words for part, words in ADVICE.items() if part in f"{type(error).__name__} {said}"), "")
            then = f"{advice}; then run it again" if advice else "run it again"
            raise ServiceError(f"{place.address}/{path}: {said}; nothing was lost; {then}") from error
        raise


@contextmanager
def writing_file(place: Place, path: str) -> Iterator[IO[bytes]]:
    """Yield a new file, which gets its name only if all of it was written."""
    with _told(place, path):
        if place.remote is not None:
            if place.address.partition("://")[0] not in OBJECT_STORES:
                place.remote.makedirs(f"{place.root}/{path}".rpartition("/")[0], exist_ok=True)
            with place.remote.open(f"{place.root}/{path}", "wb") as file:
                yield file
            return
        target = Path(place.root) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        try:
            with part.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
            sync_folder(target.parent)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def reading_file(place: Place, path: str) -> Iterator[IO[bytes]]:
    """Yield a file of the place."""
    with _told(place, path):
        file = place.remote.open(f"{place.root}/{path}", "rb") if place.remote else (Path(place.root) / path).open("rb")
        with file:
            yield file


def has_file(place: Place, path: str) -> bool:
    """Return whether the place has a file."""
    with _told(place, path):
        if place.remote is not None:
            place.remote.invalidate_cache()
            return bool(place.remote.exists(f"{place.root}/{path}"))
        return (Path(place.root) / path).is_file()


def remove_file(place: Place, path: str) -> None:
    """Remove a file of the place."""
    with _told(place, path):
        if place.remote is not None:
            place.remote.rm_file(f"{place.root}/{path}")
        else:
            (Path(place.root) / path).unlink()


def file_size(place: Place, path: str) -> int:
    """Return the size of a file in bytes."""
    with _told(place, path):
        if place.remote is not None:
            return int(place.remote.size(f"{place.root}/{path}"))
        return (Path(place.root) / path).stat().st_size
