"""Batches of one file as they are stored: clock in UTC, columns and positions as given, implausible values removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

from profsvc import formats
from profsvc.analysis.plausibility import without_implausible_values
from profsvc.analysis.timezones import SampleClock, ranges_in_utc, time_zone
from profsvc.errors import InputError
from profsvc.formats.parsing.timestamps import LOCAL, UTC
from profsvc.formats.timeseries.channels import recount_backwards
from profsvc.formats.timeseries.column_mapping import read_columns
from profsvc.formats.timeseries.sensor_positions import read_positions, with_positions
from profsvc.pipeline.ingestion.content import Content
from profsvc.pipeline.ingestion.import_result import ImportResult
from profsvc.pipeline.ingestion.reading_options import ReadOptions
from profsvc.specs.files.formats import PHASE_MARKS
from profsvc.tables import Batch, ColumnTable, Table, as_frames, frame_of
from profsvc.tables.on_demand import pd


def read_batches(stream: BinaryIO, how: ReadOptions, verdict: ImportResult) -> Iterator[Batch]:
    """Read a file: its clock brought to UTC, its columns and channels as the user said."""
    reader, batches = formats.read(stream, how.form, verdict.file_name, read_columns(how.columns), how.most_bytes)
    verdict.format = reader.NAME
    zone, positions, said = None if how.zone is None else time_zone(how.zone), read_positions(how.positions), how.said()
    content, clock = Content(), SampleClock(zone, how.offset_s)
    for read in _count_batches(verdict, map(content.seen, batches)):
        batch, unlikely = without_implausible_values(read)
        verdict.implausible += unlikely
        tables = dict(batch.given)
        if "samples" in tables and (zone is not None or how.offset_s):
            tables["samples"] = clock.in_utc(frame_of(tables["samples"]))
        if "sensors" in tables:
            tables["sensors"] = sensors = _on_the_clock(tables["sensors"], clock)
            verdict.warnings += _sensor_warnings(sensors)
            if positions:
                tables["sensors"] = with_positions(frame_of(sensors), positions)
        facts = dict(batch.facts)
        if "ranges" in tables and reader.NAME == PHASE_MARKS:
            local = zone if facts["clock"] == LOCAL else None
            if local or facts["clock"] == UTC:  # else the clock stays the file's own, as that of samples does
                tables["ranges"] = ranges_in_utc(frame_of(tables["ranges"]), local, how.offset_s)
                facts["clock"] = UTC
        on_clock = {"samples", "sensors"} & set(tables) or reader.NAME == PHASE_MARKS
        about = {name: text for name, text in said.items() if name == "reader" or on_clock}
        yield replace(batch, tables=as_frames(tables), facts={**facts, **about})
    verdict.warnings += clock.warnings()
    if why := content.emptiness(verdict):
        raise InputError(why)
    if verdict.implausible:
        verdict.message = "; ".join(
            part for part in (verdict.message, _implausible_message(verdict.implausible)) if part
        )
        yield Batch(message=verdict.message)


def _implausible_message(reasons: Sequence[str]) -> str:
    """Say what of a file cannot be; the metrics of the same name keep what stood there."""
    cells = "1 value is" if len(reasons) == 1 else f"{len(reasons)} values are"
    return f"{cells} implausible and excluded from results, for example: {reasons[0]}"


def _count_batches(verdict: ImportResult, batches: Iterator[Batch]) -> Iterator[Batch]:
    """Pass batches through and keep the account of their lines."""
    for batch in batches:
        verdict.lines_stored += batch.lines_stored
        verdict.lines_skipped += batch.lines_skipped
        verdict.lines_rejected += batch.lines_rejected
        verdict.launches += len(batch.given.get("launches", ()))
        verdict.metrics += len(batch.given.get("metrics", ()))
        verdict.metrics += 0 if batch.wide is None else int(batch.wide.collected.sum())
        verdict.samples += len(batch.given.get("samples", ()))
        verdict.summaries += len(batch.given.get("kernel_summaries", ()))
        verdict.transfers += len(batch.given.get("transfers", ()))
        if verdict.format == PHASE_MARKS:
            verdict.phases += len(batch.given.get("ranges", ()))
        if "characterizations" in batch.given:
            verdict.characterized.update(batch.tables["characterizations"]["device"])
        verdict.facts.update(batch.facts)
        verdict.message = batch.message or verdict.message
        yield batch
    verdict.lines = verdict.lines_stored + verdict.lines_skipped + verdict.lines_rejected


def _on_the_clock(given: Table, clock: SampleClock) -> Table:
    """Return the sensors with a warning about times that go back only where those in UTC do."""
    if not (times := clock.backwards()):
        return given
    sensors = frame_of(given)
    quality = [
        recount_backwards(said, times[sensor]) if isinstance(said, str) and sensor in times else said
        for sensor, said in zip(sensors["sensor_index"], sensors["quality"], strict=True)
    ]
    return sensors.assign(quality=pd.Series(quality, sensors.index, sensors["quality"].dtype))


def _sensor_warnings(given: Table) -> list[str]:
    """Return the data-quality warnings of the sensors."""
    sensors = given if isinstance(given, ColumnTable) else ColumnTable.of_frame("sensors", given)
    named = zip(*(sensors[column].tolist() for column in ("name", "gpu_index", "quality")), strict=True)
    return [
        f"{name}{'' if gpu is None else f' of GPU {gpu}'}: {quality}"
        for name, gpu, quality in named
        if isinstance(quality, str)
    ]


def with_given_device(batch: Batch, device: str | None) -> Batch:
    """Keep with the file which device the user named."""
    return batch if device is None else replace(batch, facts={**batch.facts, "given_device": device})
