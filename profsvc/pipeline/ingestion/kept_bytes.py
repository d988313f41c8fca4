"""The bytes of an upload, opened again: as they come in, or as they were kept."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO

from profsvc import store
from profsvc.errors import ServiceError

OpenUpload = Callable[[Mapping[str, Any]], AbstractContextManager[BinaryIO]]


def open_kept_bytes(files: store.BlobStore) -> OpenUpload:
    """Return what opens the kept bytes of an upload."""
    return lambda upload: store.open_blob(files, upload["sha256"], upload["file_name"])


def open_arriving_or_kept(
    arrival: store.IncomingFile, files: store.BlobStore | None, upload: Mapping[str, Any]
) -> AbstractContextManager[BinaryIO]:
    """Open an upload that is just coming in, or whose bytes were kept."""
    if upload["sha256"] == arrival.sha256:
        return nullcontext(arrival.stream())
    if files is None:
        raise ServiceError(
            f"{upload['file_name']}: its bytes are not available; run: profsvc analyze id:{upload['run_id']}"
        )
    return store.open_blob(files, upload["sha256"], upload["file_name"])
