"""What goes over the wire to a service and back: files, answers, and the errors that are meant."""

import base64
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import quote

import httpx

from profsvc import errors
from profsvc.errors import InputError, OverloadedError, ProfsvcError, ServerAwayError, ServiceError, UsageError

if TYPE_CHECKING:
    import pandas as pd

CHUNK_BYTES = 1 << 20
MAX_MEMORY_BYTES = 16 << 20
ERRORS_BY_CODE = {kind.code(): kind for kind in errors.error_kinds()}


def decode_pictures(view: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Take the pictures out of what `Client.power` or `Client.heat_map` said: the name of each, and its bytes."""
    return [(one["name"], base64.b64decode(one["data"])) for one in view.pop("pictures", [])]


def encode_request(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say something."""
    return {name: value for name, value in options.items() if value is not None}


def quote_path(name: str | int) -> str:
    """Return the name of a run as a part of a path, of which the way there takes nothing for a folder.

    >>> quote_path("lab/today"), quote_path("..")
    ('lab%2Ftoday', '%2E%2E')
    """
    text = str(name)
    return quote(text, safe="") if text.strip(".") else "%2E" * len(text)


@contextmanager
def translate_network_errors(url: str) -> Iterator[None]:
    """Turn what the network raises into one sentence."""
    try:
        yield
    except (httpx.TransportError, httpx.DecodingError) as error:
        words = str(error) or type(error).__name__
        raise ServerAwayError(f"{url} does not answer ({words}); check PROFSVC_URL, or try again later") from None
    except httpx.InvalidURL as error:
        raise UsageError(f"{url!r} is no address of a service: {error}") from None


def decode_response(answer: httpx.Response, url: str) -> dict[str, Any]:
    """Return what the service answered; raise the error that it meant."""
    if answer.status_code >= 400:
        raise error_from_response(answer, url)
    with suppress(ValueError):
        found = answer.json()
        if isinstance(found, dict) and found.get("ok") is True:
            return found
    raise ServerAwayError(f"{url} answered {answer.status_code} with something else; is it the address of profsvc?")


def is_overloaded(answer: httpx.Response) -> bool:
    """Return whether the service answered that too many others are served."""
    return answer.status_code == OverloadedError.status and isinstance(error_from_response(answer, ""), OverloadedError)


def error_from_response(answer: httpx.Response, url: str) -> ProfsvcError:
    """Return the error that the service meant, as its kind."""
    try:
        said = answer.json()["error"]
        kind, words = ERRORS_BY_CODE.get(said["code"], ServiceError), str(said["message"])
        return kind(words if kind.status < 500 else f"{url}: {words} (request {said['request_id']})")
    except (ValueError, KeyError, TypeError):
        return ServerAwayError(f"{url} answered {answer.status_code} {answer.reason_phrase}, not as profsvc does")


@contextmanager
def rewindable(source: str | Path | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    """Give a stream that can be read again, and a name for it."""
    if isinstance(source, str | Path):
        path = Path(source)
        try:
            stream = path.open("rb")
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        with stream:
            yield stream, path.name
        return
    if source.seekable():
        yield source, "upload"
        return
    with tempfile.SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES) as copy:
        shutil.copyfileobj(source, copy, CHUNK_BYTES)
        yield cast(BinaryIO, copy), "upload"


def sha256_of(stream: BinaryIO) -> str:
    """Return the SHA-256 of a stream."""
    stream.seek(0)
    known = sha256()
    while piece := stream.read(CHUNK_BYTES):
        known.update(piece)
    return known.hexdigest()


def to_frame(found: Mapping[str, Any]) -> "pd.DataFrame":
    """Return rows as a frame."""
    import pandas as pd

    return pd.DataFrame(found["rows"], columns=found["columns"])
