"""Reader of DCGM metrics from Prometheus: the text of an exporter or of /federate, and answers of query_range."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.head import head_lines, head_text
from profsvc.formats.parsing.json_stream import BrokenValueError, CountedLines, Json, TruncatedJsonError, storable_text
from profsvc.formats.parsing.text import Text
from profsvc.formats.parsing.timestamps import TimestampParser
from profsvc.formats.telemetry.dcgm import field_column
from profsvc.formats.timeseries.columns import Column, gpu_number
from profsvc.formats.timeseries.sensor_logs.log import LogBatches, LogReader
from profsvc.tables import Batch

NAME = "prometheus"

TOOL = "DCGM exporter"
PREFIX = "DCGM_FI_"
HOST_LABELS = ("Hostname", "hostname", "node", "instance")
MAX_SKIPPED = 5
MAX_SECONDS_DIGITS = 11  # milliseconds since 1970 have 12 or more
_SAMPLE = re.compile(
    r'([A-Za-z_:][\w:]*)\s*(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+(\S+)(?:\s+(-?[0-9.]+))?\s*(?:#.*)?'
)
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
_ANSWER = re.compile(r'\s*\{\s*"status"\s*:\s*"success"\s*,\s*"data"\s*:\s*\{')
_NO_SERIES = re.compile(_ANSWER.pattern + r'\s*"resultType"\s*:\s*"(?:matrix|vector)"\s*,\s*"result"\s*:\s*\[\s*\]')
_ERROR = re.compile(r'\s*\{\s*"status"\s*:\s*"error"\s*,\s*"errorType"\s*:')
MAX_ERROR_CHARS, MAX_HEAD_LINES = 300, 12


def labels_of(text: str) -> dict[str, str] | None:
    r"""Return the labels between braces; None if they are malformed.

    >>> labels_of('gpu="0",modelName="A \\"B\\", C"'), labels_of('gpu=0'), labels_of("")
    ({'gpu': '0', 'modelName': 'A "B", C'}, None, {})
    """
    found, place = {}, 0
    while text[place:].strip():
        match = _LABEL.match(text, place)
        if match is None:
            return None
        found[match[1]] = re.sub(r"\\.", lambda escape: _ESCAPES.get(escape[0], escape[0]), match[2])
        place = match.end()
    return found


def _why_nothing(text: str) -> str:
    """Return why an answer has no series; an empty text for anything else."""
    text = text.lstrip("\ufeff")
    if _ERROR.match(text):
        return f"Prometheus answered with an error: {storable_text(text.strip())[:MAX_ERROR_CHARS]}; mend the query"
    if _NO_SERIES.match(text):
        return "Prometheus answered with no series; check the names, labels and time range of the query"
    return ""


def _is_answer(head: bytes) -> bool:
    return _ANSWER.match(head_text(head).lstrip("\ufeff")) is not None


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` has metrics of DCGM as text, or is an answer of Prometheus with such metrics or none."""
    text = head_text(head)
    if _why_nothing(text):
        return True
    if PREFIX not in text:
        return False
    if _is_answer(head):
        return True
    return any(
        line.startswith((f"# HELP {PREFIX}", f"# TYPE {PREFIX}"))
        or (line.startswith(PREFIX) and _SAMPLE.fullmatch(line.rstrip()) is not None)
        for line in head_lines(head, 2000)
    )


class _Series(LogBatches):
    """The readings of one host: of every whole GPU and metric."""

    def __init__(self, unit: str | None) -> None:
        super().__init__(TOOL, TimestampParser(unit=unit))
        self.log.field_of = field_column
        self.hosts: dict[str, None] = {}
        self.devices: dict[str, None] = {}

    def begin(self, *, timed: bool) -> None:
        """Begin the readings, which have times or none."""
        times = [Column("timestamp", "time")] if timed else []
        self.log.begin([Column("gpu", "gpu"), *times, Column("metric", "field"), Column("value", "long")], 1)

    def reason_against(self, name: str, labels: Mapping[str, str]) -> str:
        """Return why a series is not stored; an empty text if it is. Note its host and its device."""
        if gpu_number(labels.get("gpu", "")) is None:
            return f"{name} has no label gpu with the index of a GPU"
        if instance := labels.get("GPU_I_ID"):
            return f"a reading of MIG instance {instance[:20]!r}: only readings of whole GPUs are stored"
        host = next((labels[label] for label in HOST_LABELS if labels.get(label)), "")
        self.hosts[host] = None
        if len(self.hosts) > 1:
            one, other = (storable_text(text)[:60] for text in list(self.hosts)[:2])
            raise BrokenInputError(
                f"the file has readings of the hosts {one!r} and {other!r}, whose GPUs have the same numbers; "
                'select one host, such as DCGM_FI_DEV_POWER_USAGE{Hostname="..."}'
            )
        self.devices[labels.get("modelName", "")] = None
        return ""

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest, the sensors and the facts of the file."""
        for fact, found in (("host", self.hosts), ("device", self.devices)):
            if len(known := [storable_text(text) for text in found if text]) == 1:
                self.log.facts[fact] = known[0]
        yield from super().last(encoding)


class _TextReader(_Series, LogReader):
    """Sorts the lines of the text format; one file may hold many scrapes, one behind the other."""

    def __init__(self, unit: str | None) -> None:
        super().__init__(unit or "ms")
        self.log.facts["layout"] = "text"
        self.timed = unit is not None
        self.seen: dict[tuple[str, str], tuple[str, str]] = {}
        self.begin(timed=self.timed)

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        text = line.strip().lstrip("\ufeff")
        if not text.startswith(PREFIX):  # comments, and metrics of the exporter itself
            self.log.skip()
            return
        match = _SAMPLE.fullmatch(text)
        labels = None if match is None else labels_of(match[2] or "")
        if match is None or labels is None:
            self.log.reject(number, line, "not a metric with labels, a value and perhaps a timestamp")
        elif reason := self.reason_against(match[1], labels):
            self.log.reject(number, line, reason)
        elif bool(match[4]) != self.timed:
            self.log.reject(number, line, f"{'no' if self.timed else 'a'} timestamp, unlike the first metric")
        elif self.timed and (before := self._before(labels["gpu"], match)):
            self.log.reject(number, line, f"a second value at this time, beside {before}: the labels differ")
        else:
            self.log.row(number, [labels["gpu"], *([match[4]] if self.timed else []), match[1], match[3]], line)

    def _before(self, gpu: str, match: re.Match[str]) -> str:
        """Return another value that a GPU has at the same time; an empty text if there is none."""
        time, value = self.seen.get((gpu, match[1]), ("", ""))
        self.seen[gpu, match[1]] = match[4], match[3]
        return value if time == match[4] and value != match[3] else ""


class _JsonReader(_Series):
    """Takes the series of an answer; its lines are counted by the text, since one line has all readings."""

    def __init__(self) -> None:
        super().__init__("s")
        self.log.facts["layout"] = "query_range"
        self.spans: dict[tuple[str, str], list[tuple[float, float]]] = {}
        self.begin(timed=True)
        self.skipped: dict[str, None] = {}

    def take(self, series: object, line: int) -> None:
        """Take the readings of a series; raise `BrokenInputError` for what Prometheus does not write."""
        if not isinstance(series, dict) or not isinstance(labels := series.get("metric"), dict):
            raise BrokenInputError(f"line {line}: a series without labels; save the whole answer of query_range")
        labels = {str(name): str(value) for name, value in labels.items()}
        name = labels.get("__name__", "")
        if not name:
            raise BrokenInputError(
                f"line {line}: a series without a name, as computed ones have; query the metrics themselves, such as "
                '{__name__=~"DCGM_FI_.*"}'
            )
        if not name.startswith(PREFIX):
            self.skipped[storable_text(name)[:60]] = None
            return
        if reason := self.reason_against(storable_text(name), labels):
            self.skipped[reason] = None
            return
        values = series.get("values", [series["value"]] if "value" in series else None)
        if not isinstance(values, list):
            raise BrokenInputError(f"line {line}: {storable_text(name)} has no values; histograms are not read")
        self._span(labels["gpu"], name, values, line)
        for pair in values:
            self.log.row(line, [labels["gpu"], f"{pair[0]}", storable_text(name), storable_text(pair[1])], "\n")

    def _span(self, gpu: str, name: str, values: list[object], line: int) -> None:
        """Check that values are pairs in the order of time, apart in time from other series of this GPU and metric."""
        times = []
        for pair in values:
            match pair:
                case [int() | Decimal() as time, str()]:
                    times.append(float(time))
                case _:
                    shown = storable_text(str(pair))[:60]
                    raise BrokenInputError(f"line {line}: {shown!r} of {storable_text(name)} is not a time and a text")
        if not times:
            return
        known = self.spans.setdefault((gpu, name), [])
        if any(times[0] <= last and first <= times[-1] for first, last in known):
            raise BrokenInputError(
                f"line {line}: two series of {storable_text(name)} of GPU {gpu} at the same time; their labels differ, "
                "such as pod or job: select one in the query"
            )
        known.append((times[0], times[-1]))


def _series(json: Json) -> Iterator[tuple[int, object]]:
    """Yield (line, series) of the answers in a file."""
    while json.peek():
        for key in json.members():
            if key != "data":
                json.value()
                continue
            for inner in json.members():
                if inner != "result":
                    json.value()
                    continue
                for _ in json.items():
                    line = json.line if json.peek() else 0
                    yield line, json.value()


def _read_answers(text: Text) -> Iterator[Batch]:
    lines, reader = CountedLines(text.lines()), _JsonReader()
    json = Json(iter(lines))
    try:
        for line, series in _series(json):
            reader.take(series, line)
            if reader.full:
                yield _uncounted(reader.batch())
    except (TruncatedJsonError, BrokenValueError):
        raise BrokenInputError(
            f"line {json.line}: the answer is cut or damaged; save it again, and look whether curl failed"
        ) from None
    reader.log.flush()
    if reader.log.rejected:
        raise BrokenInputError(f"{reader.log.first_reason}; save the answer again")
    if reader.skipped:
        reader.log.facts["skipped_series"] = "; ".join(list(reader.skipped)[:MAX_SKIPPED])
    *first, last = reader.last(text.encoding)
    yield from map(_uncounted, first)
    # One line may have all readings, so the lines of the text are counted and not the readings.
    stored = lines.count if reader.log.rows else 0
    yield replace(_uncounted(last), lines_stored=stored, lines_skipped=lines.count - stored)


def _uncounted(batch: Batch) -> Batch:
    return replace(batch, lines_stored=0, lines_skipped=0, lines_rejected=0)


def _unit_of(text: Text) -> str | None:
    """Return the unit of the timestamps of a text, by its first metric; None if it has no timestamp."""
    for line in text.lines():
        if line.startswith(PREFIX) and (match := _SAMPLE.fullmatch(line.strip())):
            if match[4] is None:
                return None
            return "s" if "." in match[4] or len(match[4].lstrip("-")) <= MAX_SECONDS_DIGITS else "ms"
    return None


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a file: its text twice, as the unit of the timestamps is that of the first; an answer once."""
    with Text(stream) as text:
        first = next((line for line in text.lines() if line.strip()), "")
        if first.lstrip("\ufeff \t").startswith("{"):
            if why := _why_nothing("\n".join(islice(text.lines(), MAX_HEAD_LINES))):
                raise BrokenInputError(f"line 1: {why}, and save the answer again")
            yield from _read_answers(text)
            return
        reader = _TextReader(_unit_of(text))
        for number, line in enumerate(text.lines(), 1):
            reader.add(number, line)
            if reader.full:
                yield reader.batch()
        yield from reader.last(text.encoding)
