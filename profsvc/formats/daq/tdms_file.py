"""The raw values of a TDMS file, block by block in bounded memory; npTDMS reads the structure and the scalings.

npTDMS would read all values of a channel in a segment at once, which may be the whole channel, and keeps all segments.
Therefore the segments are checked before npTDMS reads them, and the values are read here.
"""

import logging
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from profsvc.errors import BrokenInputError, InputError

Raw = npt.NDArray[Any]
LEAD_BYTES = 28
BLOCK_BYTES = 512 << 10
SMALL_BLOCK = 4_096
MAX_DAQMX_CHUNK_BYTES = 256 << 20
# npTDMS keeps all metadata in memory, and processes each channel of each segment.
MAX_METADATA_BYTES = 64 << 20
MAX_OBJECT_VISITS = 5_000_000
MAX_SEGMENTS = 500_000
MAX_SCALES = 1_000
UNKNOWN_LENGTH = 2**64 - 1
HAS_METADATA, NEW_LIST, INTERLEAVED, BIG_ENDIAN, DAQMX = 1 << 1, 1 << 2, 1 << 5, 1 << 6, 1 << 7
DEFRAGMENT = "defragment it with LabVIEW (TDMS Defragment), or export it again"


@dataclass(frozen=True)
class SegmentSummary:
    """The number of segments, and the reason if the last one is incomplete."""

    segments: int
    cut: str = ""
    unfinished: bool = False


def scan_segments(file: IO[bytes], size: int) -> SegmentSummary:
    """Read the lead-in of each segment; refuse invalid segments, and too many of them."""
    position = segments = metadata = objects = steps = 0
    while position < size:
        file.seek(position)
        lead = file.read(LEAD_BYTES)
        if len(lead) < LEAD_BYTES and b"TDSm".startswith(lead[:4]):
            return SegmentSummary(segments, f"the file ends inside the lead-in of segment {segments + 1}")
        if lead[:4] != b"TDSm":
            raise BrokenInputError(
                f"byte {position}: segment {segments + 1} must begin with TDSm, but begins with {lead[:4]!r}; "
                "copy the file again"
            )
        (flags,) = struct.unpack("<l", lead[4:8])
        order = ">" if flags & BIG_ENDIAN else "<"
        _, length, before = struct.unpack(f"{order}lQQ", lead[8:])
        end = position + LEAD_BYTES + length
        if position + LEAD_BYTES + before > min(size, end):
            return SegmentSummary(segments, f"the file ends inside the description of segment {segments + 1}")
        segments += 1
        metadata += before
        count = file.read(4)
        if flags & HAS_METADATA and len(count) == 4:
            (listed,) = struct.unpack(f"{order}L", count)
            objects = min(listed + (0 if flags & NEW_LIST else objects), metadata)
        steps += objects + 1
        if metadata > MAX_METADATA_BYTES or steps > MAX_OBJECT_VISITS or segments > MAX_SEGMENTS:
            raise BrokenInputError(f"the file has too many small segments to be held ({segments} seen); {DEFRAGMENT}")
        if length == UNKNOWN_LENGTH:
            return SegmentSummary(segments, unfinished=True)
        if end > size:
            return SegmentSummary(segments, f"the file ends inside the values of segment {segments}")
        position = end
    return SegmentSummary(segments)


@contextmanager
def nptdms_errors_refused() -> Iterator[None]:
    """Convert any error of npTDMS on invalid bytes to `BrokenInputError`."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # npTDMS raises what its parsing runs into: struct.error, KeyError, plain Exception
        words = " ".join(str(error).split())[:200]
        raise BrokenInputError(
            f"the TDMS file cannot be read ({type(error).__name__}: {words}); copy it again, or export it as CSV"
        ) from None


def open_reader(file: IO[bytes]) -> Any:
    """Return the reader of npTDMS, after it has read the structure of the file; refuse if npTDMS is not installed."""
    try:
        from nptdms.log import log_manager
        from nptdms.reader import TdmsReader
    except ModuleNotFoundError:
        raise InputError("a TDMS file needs npTDMS; install it with: pip install 'profsvc[tdms]'") from None
    log_manager.set_level(logging.CRITICAL)
    file.seek(0)
    with nptdms_errors_refused():
        reader = TdmsReader(file)
        reader.read_metadata()
        return reader


def scaling_of(*properties: Mapping[str, Any]) -> Any:
    """Return the scaling that the properties of a channel, its group and its file give, or None."""
    from nptdms.scaling import get_scaling

    with nptdms_errors_refused():
        for names in properties:
            numbers = [int(names.get("NI_Number_Of_Scales", 0))]
            numbers += [int(name[9:].split("]")[0]) for name in names if name.startswith("NI_Scale[")]
            if max(numbers) > MAX_SCALES:
                raise BrokenInputError(f"a channel announces {max(numbers)} scalings; copy the file again")
        return get_scaling(*properties)


def apply_scaling(scaling: Any, values: Any) -> Raw:
    """Apply a scaling, if there is one, to values or to the raw scalers of DAQmx."""
    from nptdms.base_segment import RawChannelDataChunk

    if scaling is None:
        if isinstance(values, Mapping):
            raise BrokenInputError("a channel holds raw DAQmx values without their scaling; export the file as CSV")
        return np.asarray(values)
    raw = RawChannelDataChunk(None, values) if isinstance(values, Mapping) else RawChannelDataChunk(values, None)
    return np.asarray(scaling.scale(raw))


def raw_values(file: IO[bytes], segments: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield blocks of values by path; the channels of a block usually have equal lengths.

    Small blocks of the same channels are joined, because a file may have a segment for each reading.
    """
    waiting: list[dict[str, Any]] = []
    size = 0
    for block in (block for segment in segments for block in _blocks(file, segment)):
        lengths = {-1 if isinstance(raw, Mapping) else len(raw) for raw in block.values()}
        # Values match the times of their block only if all have equal lengths.
        alone = len(lengths) != 1 or -1 in lengths
        if waiting and (alone or size >= SMALL_BLOCK or block.keys() != waiting[0].keys()):
            yield _together(waiting)
            waiting, size = [], 0
        if alone:
            yield block
        else:
            waiting.append(block)
            size += max(lengths)
    if waiting:
        yield _together(waiting)


def _together(some: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if len(some) == 1:
        return some[0]
    return {path: np.concatenate([block[path] for block in some]) for path in some[0]}


def _blocks(file: IO[bytes], segment: Any) -> Iterator[dict[str, Any]]:
    """Yield the values of a segment by path."""
    objects = [one for one in segment.ordered_objects if one.has_data]
    size = segment.next_segment_pos - segment.data_position
    if not objects or size <= 0 or not segment.num_chunks:
        return
    if segment.toc_mask & DAQMX:
        yield from _daqmx(file, segment, size)
    elif segment.toc_mask & INTERLEAVED and all(one.data_type.size for one in objects):
        widths = [one.data_type.size for one in objects]
        yield from _records(file, segment, objects, widths, size // sum(widths))
    else:
        yield from _contiguous(file, segment, objects, size)


def _contiguous(file: IO[bytes], segment: Any, objects: Sequence[Any], size: int) -> Iterator[dict[str, Any]]:
    widths = [one.data_size for one in objects]
    whole = size // sum(widths)
    if sum(widths) <= BLOCK_BYTES:
        yield from _records(file, segment, objects, widths, whole)
    else:
        for number in range(whole):
            start = segment.data_position + number * sum(widths)
            yield from _pieces(file, segment, objects, start, [one.number_values for one in objects])
    if lengths := segment.final_chunk_lengths_override:
        start = segment.data_position + whole * sum(widths)
        yield from _pieces(file, segment, objects, start, [lengths.get(one.path, 0) for one in objects])


def _values(data: Raw, one: Any, segment: Any) -> Raw:
    order = ">" if segment.toc_mask & BIG_ENDIAN else "<"
    found: Raw = one.data_type.from_bytes(np.ascontiguousarray(data).reshape(-1), order)
    return found


def _can_be_read(one: Any) -> bool:
    """Tell whether the values of an object are numbers or times, not texts or complex numbers."""
    return one.data_type.size is not None and hasattr(one.data_type, "from_bytes")


def count_unread_values(segment: Any) -> int:
    """Return the number of values of a segment that are not read: texts, complex numbers."""
    if segment.toc_mask & DAQMX:
        return 0
    last = segment.final_chunk_lengths_override
    whole, total = segment.num_chunks - (last is not None), 0
    for one in segment.ordered_objects:
        if one.has_data and not _can_be_read(one):
            # A text takes at least four bytes, which limits the number of texts that the file announces.
            size = one.data_type.size or 4
            total += min(one.number_values, one.data_size // size) * whole + (last or {}).get(one.path, 0)
    return int(total)


def _records(
    file: IO[bytes], segment: Any, objects: Sequence[Any], widths: Sequence[int], count: int
) -> Iterator[dict[str, Any]]:
    """Yield values of records of fixed width: rows of interleaved values, or small chunks."""
    width = sum(widths)
    offsets = np.cumsum([0, *widths])
    at_once = max(1, BLOCK_BYTES // width)
    for begin in range(0, count, at_once):
        file.seek(segment.data_position + begin * width)
        data = np.frombuffer(file.read(min(at_once, count - begin) * width), np.uint8)
        rows = data[: len(data) // width * width].reshape(-1, width)
        yield {
            one.path: _values(rows[:, offsets[n] : offsets[n + 1]], one, segment)
            for n, one in enumerate(objects)
            if _can_be_read(one) and widths[n]
        }


def _pieces(
    file: IO[bytes], segment: Any, objects: Sequence[Any], start: int, lengths: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield the values of a chunk with contiguous channels, part by part."""
    starts, readable = {}, []
    for one, length in zip(objects, lengths, strict=True):
        starts[one.path] = start
        size = one.data_type.size
        start += one.data_size if size is None or length == one.number_values else length * size
        if _can_be_read(one):
            readable.append((one, length))
    at_once = BLOCK_BYTES // max([one.data_type.size for one, _ in readable], default=1)
    for begin in range(0, max([length for _, length in readable], default=0), at_once):
        block = {}
        for one, length in readable:
            if begin < length:
                file.seek(starts[one.path] + begin * one.data_type.size)
                data = np.frombuffer(file.read(min(at_once, length - begin) * one.data_type.size), np.uint8)
                whole = len(data) // one.data_type.size * one.data_type.size
                block[one.path] = _values(data[:whole], one, segment)
        yield block


def _daqmx(file: IO[bytes], segment: Any, size: int) -> Iterator[dict[str, Any]]:
    if size // segment.num_chunks > MAX_DAQMX_CHUNK_BYTES:
        raise BrokenInputError(f"a chunk of raw DAQmx values has {size // segment.num_chunks} bytes; export it as CSV")
    for chunk in segment.read_raw_data(file):
        yield {
            path: found.data if found.data is not None else found.scaler_data
            for path, found in chunk.channel_data.items()
        }
