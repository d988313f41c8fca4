"""Write what the analysis made of a run, and clear the rows of runs and uploads."""

import json
import pickle
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import IO, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.errors import DomainError
from profsvc.specs.advice.causes import causes
from profsvc.specs.metrics.vocabulary import counters as vocabulary
from profsvc.store.connection.sql import Connection, Engine, bindparam, text
from profsvc.store.connection.transactions import is_in_transaction, lock_existing_row, writing
from profsvc.store.connection.urls import file_of
from profsvc.store.ingest.inserts.column_values import factorize, values
from profsvc.store.ingest.inserts.dictionaries import Names
from profsvc.store.ingest.runs import count_change
from profsvc.store.ingest.staging import DirectSink, StagedResults, staging_results
from profsvc.store.ingest.writers.encoder import EVENTS
from profsvc.store.results.finished_parts import BASIS_PART, LAUNCHES_PART, counted_changes, mark_finished
from profsvc.store.results.totals import write_totals
from profsvc.store.schema.column_types import IDS_PER_UPLOAD, WHOLE_RUN_ID
from profsvc.store.schema.contents.source import KEYS as SOURCE_KEYS
from profsvc.store.schema.results.launch_results import RESULT_TOTALS, RESULTS
from profsvc.store.schema.tables import POWER

# Table of results -> the columns it must have, and those that may be left out (null then).
RESULT_COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "counters": (("launch_id", "counter", "value"), ("expression", "reason")),
    "criteria": (
        ("launch_id", "criterion", "value"),
        ("share", "speedup", "value_as_published", "speedup_as_published", "value_conditional", "flags", "reason"),
    ),
    "potential": (
        ("launch_id", "speedup"),
        (
            *(
                "bound",
                "ideal_bound",
                "mem_throughput_ratio",
                "arith_throughput_ratio",
                "speedup_as_published",
                "speedup_ceiling",
            ),
            *("ideal_ns", "duration_ns", "ceiling_flags", "speedup_low", "speedup_high", "flags", "reason"),
        ),
    ),
    "models": (("launch_id", "model", "quantity", "value"), ("unit", "form", "flags", "label", "reason")),
    "causes": (("launch_id", "rank", "cause", "saving_ns", "saving_fraction", "low", "high"), ("kind", "first_step")),
}
# Tables whose rows an upload has in one range of this key, those that others refer to behind them.
RANGE_KEYS = {
    "rules": "launch_id",
    "counters": "launch_id",
    "metrics": "launch_ref",
    "samples": "sample_id",
    "sample_blocks": "sensor_id",
    "sensors": "sensor_id",
}
RANGE_KEYS |= {"launches": "launch_id", "twins": "launch_id", "wide_blocks": "first_launch", "wide_cells": "cell_id"}
RANGE_KEYS |= {"wide_lists": "list_id", "wide_constants": "cell_id"}
RANGE_KEYS |= {table: key for table, (key, *_) in EVENTS.items()} | SOURCE_KEYS
# Columns that stand in the tables of names.
WORDS = frozenset(("model", "quantity", "unit", "form", "cause", "kind", "first_step"))
TEXT_COLUMNS = {"counter": "counter_id", "expression": "expression_id", "reason": "reason_id", "bound": "bound_id"}
TEXT_COLUMNS |= {"criterion": "criterion_id", "ideal_bound": "ideal_bound_id", "label": "label_id"}
OWN_KEYS = ("criterion_id", "model_id", "cause_id", "counter_id")
MAX_MEMORY_BYTES = 1 << 20
PAGED_RESULTS = ("counters", "criteria", "models", "causes")
"""Tables with many rows per launch; on SQLite they are staged if there are more than `MIN_STAGED_ROWS` in all."""
MIN_STAGED_ROWS = 50_000
LAUNCHES_PER_DELETE = 500
Results = Mapping[str, pd.DataFrame]
Columns = dict[str, Any]
Ints = npt.NDArray[np.int64]


class Scope(NamedTuple):
    """The launches that an analysis computed, all of the run or ``launches``, and the ``basis`` of their results."""

    basis: str
    launches: Sequence[int] | None = None


def save_results(
    engine: Engine,
    run_id: int,
    parts: Iterable[Results],
    version: str,
    seen: int | None = None,
    scope: Scope | None = None,
) -> bool:
    """Write the results of a run by one version of the analysis, which becomes the run's newest.

    ``parts`` are spooled to a temporary file until all have arrived, so that the store is not locked meanwhile. Rows
    of the same version are replaced; those of other versions stay and are in the ``_history`` views. Counters follow
    from the metrics, which never change, so only those of the newest version are kept. The tables and their columns are
    those of `RESULT_COLUMNS`; ``kernel`` or ``kernel_id`` may name the kernel of a row as well. ``launch_id`` is null
    for rows about a kernel or about the whole run. An empty table needs no columns. With a ``scope`` of some launches
    the rows of others stay; those about kernels and the whole run are replaced.

    Return whether they were written: False if the run has changed since its change count was ``seen``.
    """
    with tempfile.SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES) as waiting, ExitStack() as held:
        rows = 0
        for part in parts:
            for name, table in part.items():
                _check(name, table)
                rows += len(table)
            pickle.dump(part, waiting, pickle.HIGHEST_PROTOCOL)
        end = waiting.tell()
        waiting.seek(0)
        staged, others = None, cast("IO[bytes]", waiting)
        if rows > MIN_STAGED_ROWS and file_of(engine) is not None and not is_in_transaction(engine):
            staged = held.enter_context(staging_results(engine, PAGED_RESULTS))
            others, end = _stage(engine, run_id, held, staged, others, end, version)
        with writing(engine, staged.files if staged else None) as connection:
            lock_existing_row(connection, "runs", "run_id", run_id)
            if seen is not None and counted_changes(connection, run_id) != seen:
                return False
            texts = Names(connection, "texts")
            number = texts[version,]
            if scope is None or scope.launches is None:
                _clear_version(connection, run_id, number)
            else:
                _clear_launches(connection, run_id, number, scope.launches)
            if staged:
                staged.copy(connection)
            while others.tell() < end:
                _save_part(connection, run_id, pickle.load(others), number, texts, DirectSink(connection))
            query = text("UPDATE runs SET version_id = :number WHERE run_id = :run_id")
            connection.execute(query, {"number": number, "run_id": run_id})
            write_totals(connection, [run_id])
            mark_finished(connection, run_id, LAUNCHES_PART, number)
            if scope is not None:
                mark_finished(connection, run_id, BASIS_PART, texts[scope.basis,])
    return True


def _stage(
    engine: Engine, run_id: int, held: ExitStack, staged: StagedResults, waiting: IO[bytes], end: int, version: str
) -> tuple[IO[bytes], int]:
    """Write the long tables to the staging area; return a file with the others, and its end."""
    others: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES)  # noqa: SIM115  # closed by `held`
    held.callback(others.close)
    texts = Names(engine, "texts")
    number = texts[version,]
    while waiting.tell() < end:
        part = pickle.load(waiting)
        paged = {name: table for name, table in part.items() if name in PAGED_RESULTS}
        _save_part(engine, run_id, paged, number, texts, staged)
        rest = {name: table for name, table in part.items() if name not in paged}
        pickle.dump(rest, others, pickle.HIGHEST_PROTOCOL)
    staged.close()
    size = others.tell()
    others.seek(0)
    return others, size


def uploads_of(connection: Connection, run_id: int) -> set[int]:
    """Return the numbers of the uploads of a run."""
    query = text("SELECT upload_id FROM uploads WHERE run_id = :run_id")
    return set(connection.execute(query, {"run_id": run_id}).scalars())


def _clear_version(connection: Connection, run_id: int, version: int) -> None:
    """Delete what a version of the analysis made of a run, and the counters, whatever version made them."""
    for table in RESULTS.values():
        query = text(f"DELETE FROM {table.name} WHERE run_id = :run_id AND version_id = :version")
        connection.execute(query, {"run_id": run_id, "version": version})
    for upload_id in sorted(uploads_of(connection, run_id)):
        _delete_range(connection, "counters", "launch_id", upload_id)


def _clear_launches(connection: Connection, run_id: int, version: int, launches: Sequence[int]) -> None:
    """Delete what a version of the analysis made of some launches and of the whole run, and their counters."""
    for begin in range(0, max(len(launches), 1), LAUNCHES_PER_DELETE):
        some = [*launches[begin : begin + LAUNCHES_PER_DELETE], WHOLE_RUN_ID]
        for table, condition in (
            *((table.name, "run_id = :run_id AND version_id = :version AND ") for table in RESULTS.values()),
            ("counters", ""),
        ):
            query = text(f"DELETE FROM {table} WHERE {condition}launch_id IN :some")
            values = {"some": some} | ({"run_id": run_id, "version": version} if condition else {})
            connection.execute(query.bindparams(bindparam("some", expanding=True)), values)


def _save_part(
    connection: Connection | Engine,
    run_id: int,
    part: Results,
    version: int,
    texts: Names,
    sink: DirectSink | StagedResults,
) -> None:
    coded = {name: _coded(name, table) for name, table in part.items() if not table.empty}
    # All texts at once: to look up those of each column takes a third of the time to save the results of few launches.
    texts.numbers(list(dict.fromkeys((one,) for own in coded.values() for _, found in own.values() for one in found)))
    for name, table in part.items():
        if table.empty:
            continue
        columns = _columns(name, table, coded[name], texts)
        if name != "counters":
            columns |= _subject(connection, run_id, table, version)
        if name == "models":
            columns["model_id"] = _model_ids(connection, table)
        if name == "causes":
            columns["cause_id"] = _cause_ids(connection, table)
        # In the order of their keys rows are put behind each other; as they come, each into its place.
        own = next((columns[key] for key in OWN_KEYS if key in columns), None)
        launches = columns["launch_id"]
        order = np.argsort(launches, kind="stable") if own is None else np.lexsort((np.asarray(own), launches))
        sink.write(name, {key: column[order] for key, column in columns.items()})


def _check(name: str, table: pd.DataFrame) -> None:
    if name not in RESULT_COLUMNS:
        raise DomainError(f"no results are named {name!r}; there are {list(RESULT_COLUMNS)}")
    if table.empty:
        return
    must, may = RESULT_COLUMNS[name]
    subject = () if name == "counters" else ("kernel", "kernel_id")
    if missing := set(must) - set(table.columns):
        raise DomainError(f"results {name!r} lack the columns {sorted(missing)}")
    if unknown := set(table.columns) - {*must, *may, *subject}:
        raise DomainError(f"results {name!r} have no column {sorted(unknown)}; they have {[*must, *may, *subject]}")


def _coded(name: str, table: pd.DataFrame) -> dict[str, tuple[Ints, Sequence[str]]]:
    """Return the codes and the distinct texts of each column of texts."""
    columns = [column for column in chain(*RESULT_COLUMNS[name]) if column in TEXT_COLUMNS and column in table]
    return {column: factorize(table[column]) for column in columns}


def _columns(name: str, table: pd.DataFrame, coded: Mapping[str, tuple[Ints, Sequence[str]]], texts: Names) -> Columns:
    """Return the columns of a table of results under their names in the store, texts as numbers."""
    columns: Columns = {}
    must, may = RESULT_COLUMNS[name]
    for column in (*must, *may):
        if column not in table or column in WORDS:
            continue
        if column in TEXT_COLUMNS:
            codes, distinct = coded[column]
            numbers = texts.numbers([(name,) for name in distinct])
            columns[TEXT_COLUMNS[column]] = pd.array([*numbers, None], "Int64")[codes]  # null has the code -1
        elif column in {"launch_id", "rank", "flags", "ceiling_flags"}:
            columns[column] = _integers_or_zero(table[column])
        else:
            columns[column] = table[column].to_numpy("float64", na_value=np.nan)
    return columns


def _integers_or_zero(column: "pd.Series[Any]") -> Ints:
    """Return whole numbers, 0 where there is none: the whole run, no flag."""
    if column.dtype == np.int64:
        return column.to_numpy()
    return np.array([int(value or 0) for value in values(column)], np.int64)


def _subject(connection: Connection | Engine, run_id: int, table: pd.DataFrame, version: int) -> Columns:
    """Return what every row of results says beside its own: run, version, kernel, flags where it has none."""
    same = {"run_id": run_id, "version_id": version, **({} if "flags" in table else {"flags": 0})}
    repeated = {column: np.full(len(table), number) for column, number in same.items()}
    return repeated | {"kernel_id": _kernels(connection, table)}


def _model_ids(connection: Connection | Engine, table: pd.DataFrame) -> Ints:
    """Return the number of the model, quantity, unit and form of each row."""
    place, texts = np.zeros(len(table), dtype=np.int64), []
    for part in ("model", "quantity", "unit", "form"):
        codes, distinct = factorize(table[part]) if part in table else (np.full(len(table), -1), [])
        texts.append([*distinct, None])
        place = place * len(texts[-1]) + codes % len(texts[-1])  # null has the code -1
    back, found = pd.factorize(place)
    digits = np.unravel_index(found, [len(names) for names in texts])
    names = [
        tuple(names[k] or "" for names, k in zip(texts, row, strict=True)) for row in np.column_stack(digits).tolist()
    ]
    return np.array(Names(connection, "model_names").numbers(names), np.int64)[back]


def _cause_ids(connection: Connection | Engine, table: pd.DataFrame) -> Ints:
    """Return the number of the cause of each row: the words of causes.toml, and kind and step of the row."""
    own = [table[column] if column in table else [None] * len(table) for column in ("kind", "first_step")]
    codes, distinct = pd.factorize(pd.MultiIndex.from_arrays([table["cause"], *own]))
    names = []
    for name, kind, step in distinct:
        cause = causes()[str(name)]
        evidence = json.dumps([(counter, vocabulary()[counter].unit) for counter in cause.evidence])
        names.append(
            (
                cause.name,
                cause.title,
                kind if isinstance(kind, str) else cause.kind,
                step if isinstance(step, str) else cause.first_step,
                evidence,
            )
        )
    return np.array(Names(connection, "cause_names").numbers(names), np.int64)[codes]


def _kernels(connection: Connection | Engine, table: pd.DataFrame) -> Ints:
    """Return the kernel of each row; none where the launch says it already, or for the whole run."""
    kernels, alone = np.full(len(table), WHOLE_RUN_ID), table["launch_id"].isna().to_numpy()
    column = next((name for name in ("kernel_id", "kernel") if name in table), None)
    if column is None or not alone.any():
        return kernels
    found = values(table[column][alone])
    if column == "kernel":
        found = Names(connection, "kernels").column([None if kernel is None else (kernel,) for kernel in found])
    kernels[alone] = [WHOLE_RUN_ID if kernel is None else int(kernel) for kernel in found]
    return kernels


def describe_device(engine: Engine, device_id: int, sms: int | None, figures: Mapping[str, Any]) -> None:
    """Write what is known of a device: its streaming multiprocessors, and other figures by name.

    Of what several runs say the most counts, in whatever order they come.
    """
    with writing(engine) as connection:
        lock_existing_row(connection, "devices", "device_id", device_id)
        query = text("SELECT sms, facts FROM devices WHERE device_id = :device_id")
        known = connection.execute(query, {"device_id": device_id}).one()
        most = json.loads(known.facts or "{}")
        for name, value in figures.items():
            most[name] = max(value, most.get(name, value))
        connection.execute(
            text("UPDATE devices SET sms = :sms, facts = :facts WHERE device_id = :device_id"),
            {
                "sms": max((n for n in (sms, known.sms) if n is not None), default=None),
                "facts": json.dumps(most, sort_keys=True),
                "device_id": device_id,
            },
        )


def clear_results(connection: Connection, run_id: int) -> None:
    """Delete the results of a run, of every version of the analysis; they were computed with rows that change."""
    for name in (*RESULTS, *RESULT_TOTALS, *POWER, "wall_time"):
        connection.execute(text(f"DELETE FROM {name} WHERE run_id = :run_id"), {"run_id": run_id})
    query = "DELETE FROM predictions WHERE run_before = :run_id OR run_after = :run_id"
    connection.execute(text(query), {"run_id": run_id})
    connection.execute(text("UPDATE runs SET version_id = NULL WHERE run_id = :run_id"), {"run_id": run_id})
    count_change(connection, run_id)


def clear_upload(connection: Connection, upload_id: int) -> None:
    """Delete an upload with all its rows."""
    for table, key in RANGE_KEYS.items():
        _delete_range(connection, table, key, upload_id)
    for table in ("listed_launches", "uploads"):
        connection.execute(text(f"DELETE FROM {table} WHERE upload_id = :upload_id"), {"upload_id": upload_id})


def _delete_range(connection: Connection, table: str, key: str, upload_id: int) -> None:
    """Delete the rows that an upload has in a table."""
    bounds = {"first": upload_id * IDS_PER_UPLOAD, "end": (upload_id + 1) * IDS_PER_UPLOAD}
    connection.execute(text(f"DELETE FROM {table} WHERE {key} >= :first AND {key} < :end"), bounds)
