"""A trace of a run for Perfetto: events as slices of tracks, sensor readings as counters.

The messages are those of the published schema, in the package ``perfetto``, which is imported when it is needed.
"""

from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, NamedTuple

from profsvc.errors import ServiceError, UsageError

TITLES = {"kernels": "kernels", "transfers": "copies", "api_calls": "API calls", "ranges": "ranges"}
GROUPS = {"kernels": "GPU {}", "transfers": "GPU {}", "api_calls": "process {}", "ranges": "process {}"}
THREADS = {"kernels": "stream", "transfers": "stream", "api_calls": "thread", "ranges": "thread"}
SEQUENCE = 1
MAX_LANES = 64


class Written(NamedTuple):
    """What a trace contains of a kind: the number of its events, and the sum of their durations as written."""

    events: int
    total_ns: int


class Writer:
    """Writes packets to a stream; memory grows with names and tracks, not with events."""

    def __init__(self, stream: BinaryIO) -> None:
        """Begin a trace."""
        try:
            from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
        except ModuleNotFoundError as error:
            raise ServiceError(
                f"the schema of Perfetto is missing ({error}); run: pip install 'profsvc[perfetto]'"
            ) from None
        self._schema: Any = schema
        self._stream = stream
        self._names: dict[str, int] = {}
        self._tracks: dict[tuple[Any, ...], int] = {}
        self._open: dict[int, list[int]] = {}
        first = self._packet()
        first.sequence_flags = schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        self._write(first)

    def events(self, kind: str, rows: Iterable[Any]) -> Written:
        """Write the events of a kind, in the order of their starts.

        Events of a stream or thread that overlap without one inside the other are on several tracks.
        """
        number = total_ns = 0
        for lane, thread, name, start_ns, duration_ns, argument in rows:
            length_ns = round(duration_ns or 0)
            track = self._free_track(kind, lane, thread, start_ns, start_ns + length_ns)
            begin = self._event(track, start_ns, "TYPE_SLICE_BEGIN")
            self._name(begin, str(name))
            if argument is not None:
                note = begin.track_event.debug_annotations.add()
                note.name = "bytes" if kind == "transfers" else "domain" if kind == "ranges" else "kernel"
                if isinstance(argument, str):
                    note.string_value = argument
                else:
                    note.int_value = int(argument)
            self._write(begin)
            self._write(self._event(track, start_ns + length_ns, "TYPE_SLICE_END"))
            number, total_ns = number + 1, total_ns + length_ns
        return Written(number, total_ns)

    def samples(self, rows: Iterable[Any]) -> int:
        """Write sensor readings as counters; return how many."""
        number = 0
        for sensor, name, unit, time_ns, value in rows:
            title = f"{name} ({unit})" if unit else str(name)
            packet = self._event(self._track(("sensor", sensor), title, None, counter=True), time_ns, "TYPE_COUNTER")
            packet.track_event.double_counter_value = float(value)
            self._write(packet)
            number += 1
        return number

    def _free_track(self, kind: str, lane: Any, thread: Any, start_ns: int, end_ns: int) -> int:
        group = GROUPS[kind].format(lane)
        parent = self._track((group,), group, None)
        title = TITLES[kind] if thread is None else f"{THREADS[kind]} {thread}: {TITLES[kind]}"
        for place in range(MAX_LANES):
            track = self._track((kind, lane, thread, place), title, parent)
            ends = self._open.setdefault(track, [])
            while ends and ends[-1] <= start_ns:
                ends.pop()
            if not ends or end_ns <= ends[-1]:
                ends.append(end_ns)
                return track
        raise UsageError(f"more than {MAX_LANES} events of {title} overlap, which no trace of a device does")

    def _track(self, key: tuple[Any, ...], title: str, parent: int | None, *, counter: bool = False) -> int:
        if key not in self._tracks:
            self._tracks[key] = len(self._tracks) + 1
            packet = self._packet()
            described = packet.track_descriptor
            described.uuid, described.name = self._tracks[key], title
            if parent is not None:
                described.parent_uuid = parent
            if counter:
                described.counter.SetInParent()
            self._write(packet)
        return self._tracks[key]

    def _name(self, packet: Any, name: str) -> None:
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = len(self._names) + 1
            entry = packet.interned_data.event_names.add()
            entry.iid, entry.name = known, name
        packet.track_event.name_iid = known

    def _event(self, track: int, time_ns: int, kind: str) -> Any:
        if time_ns < 0:
            raise UsageError(
                f"an event starts {-time_ns} ns before the origin of its clock, which Perfetto cannot show"
            )
        packet = self._packet()
        packet.timestamp = time_ns
        packet.sequence_flags = self._schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        packet.track_event.type = getattr(self._schema.TrackEvent, kind)
        packet.track_event.track_uuid = track
        return packet

    def _packet(self) -> Any:
        packet = self._schema.TracePacket()
        packet.trusted_packet_sequence_id = SEQUENCE
        return packet

    def _write(self, packet: Any) -> None:
        self._stream.write(self._schema.Trace(packet=[packet]).SerializeToString())


def report(written: Mapping[str, Written], untimed: Mapping[str, int], readings: int) -> list[str]:
    """Return what a trace contains, one sentence per kind, and what it lacks.

    >>> report({"kernels": Written(2, 1500)}, {"kernels": 1}, 0)
    ['2 kernels, 1500 ns in all', '1 of kernels left out: no start time']
    """
    said = [f"{one.events} {TITLES[kind]}, {one.total_ns} ns in all" for kind, one in written.items() if one.events]
    said += [f"{number} of {TITLES[kind]} left out: no start time" for kind, number in untimed.items() if number]
    return said + ([f"{readings} sensor readings"] if readings else [])
