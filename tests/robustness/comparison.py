"""What a store holds against what was acknowledged, and against a store that was never disturbed."""

import hashlib
import io
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from profsvc import pipeline, store
from profsvc.store.connection.transactions import reading
from profsvc.store.connection.urls import file_of
from profsvc.store.ingest import blob_store
from profsvc.store.maintenance import cleanup
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.store.schema.results import launch_results as schema
from tests.robustness.numbered_files import content, run_of

# Whatever an upload has rows in, and the key that says whose they are.
TABLES = {"launches": "launch_id", "metrics": "launch_ref", "samples": "sample_id", "transfers": "transfer_id"}
TABLES |= {"sample_blocks": "sensor_id"}
SUMS = {"launches": "duration_ns", "metrics": "line", "samples": "value", "transfers": "line"}
SUMS |= {"sample_blocks": "coalesce(length(readings) + radix + least, 0)"}
RESULTS = ("v1_criteria", "v1_potential", "v1_models", "v1_causes", "v1_power", "v1_power_quality")
# What the rows and the results of a file come to that was uploaded undisturbed, by its number.
UNDISTURBED: dict[int, tuple[Any, list[int]]] = {}


def compare(engine: Engine, folder: Path, acknowledged: list[tuple[int, str, int]], runs: int = 0) -> list[str]:
    """Hold a store against what was acknowledged and against one that was never disturbed, with as many ``runs``."""
    files = store.blob_store_of(engine, str(folder / "kept"))
    pipeline.analyze_unfinished(engine, files)
    found, wrong = prints(engine), [*unowned(engine), *damaged(engine)]
    wrong += [f"run {number} lacks {' and '.join(parts)}" for number, parts in store.unfinished(engine).items()]
    uploads = {row["sha256"]: row for row in store.select(engine, "v1_uploads")}
    candidates = {number for number, _, _ in acknowledged}
    candidates.add(max(candidates, default=-1) + 1)  # it may be stored, and killed before it was acknowledged
    numbers = {hashlib.sha256(content(number)).hexdigest(): number for number in candidates}
    wrong += [
        f"file {number} was acknowledged and is gone" for number, sha256, _ in acknowledged if sha256 not in found
    ]
    wrong += [
        f"file {number} was acknowledged as upload {upload}, but is {uploads[sha256]['upload_id']}"
        for number, sha256, upload in acknowledged
        if sha256 in uploads and uploads[sha256]["upload_id"] != upload
    ]
    wrong += [f"upload {row['upload_id']} is of no file" for sha256, row in uploads.items() if sha256 not in numbers]
    stored = [numbers[sha256] for sha256 in found if sha256 in numbers]
    undisturbed = upload_undisturbed(stored)
    should = {sha256: undisturbed[numbers[sha256]][0] for sha256 in found if sha256 in numbers}
    results = {f"file {number}": counts for number, (_, counts) in undisturbed.items()}
    if runs:
        results = results_in_runs(stored, runs)
    made = counted_results(engine)
    wrong += [
        f"{run}: results {made[run]}, should be {should_be}"
        for run, should_be in results.items()
        if run in made and made[run] != should_be
    ]
    wrong += [f"file {numbers[s]}: {found[s]}, should be {should[s]}" for s in should if found[s] != should[s]]
    wrong += [f"kept bytes of file {numbers[s]}: {bad}" for s in should if (bad := blob_store.blob_damage(files, s))]
    return wrong + unlisted(engine, files)


def results_in_runs(numbers: list[int], runs: int) -> dict[str, list[int]]:
    """Return how many results so many runs have that these files were uploaded into undisturbed."""
    with tempfile.TemporaryDirectory() as place:
        clean = store.open_store(str(Path(place) / "clean.sqlite"), pooled=True)
        for number in numbers:
            run = store.RunInfo(name=run_of(number, runs))
            pipeline.ingest(clean, io.BytesIO(content(number)), f"{number}.csv", run)
        found = counted_results(clean)
        clean.dispose()
    return found


def upload_undisturbed(numbers: list[int]) -> dict[int, tuple[Any, list[int]]]:
    """Return what files come to that nothing disturbs; each is uploaded once in a process, to a store of its own."""
    with tempfile.TemporaryDirectory() as place:
        clean = store.open_store(str(Path(place) / "clean.sqlite"), pooled=True)
        for number in (new := [number for number in numbers if number not in UNDISTURBED]):
            pipeline.ingest(clean, io.BytesIO(content(number)), f"{number}.csv", store.RunInfo(name=run_of(number, 0)))
        rows, results = prints(clean), counted_results(clean)
        clean.dispose()
    for number in new:
        UNDISTURBED[number] = rows[hashlib.sha256(content(number)).hexdigest()], results[f"file {number}"]
    return {number: UNDISTURBED[number] for number in numbers}


def prints(engine: Engine) -> dict[str, Any]:
    """Return of every file what its rows come to, by its SHA-256."""
    with reading(engine) as connection:
        named = connection.execute(text("SELECT upload_id, sha256 FROM uploads")).all()
        sums: dict[str, dict[int, Any]] = {}
        for table, key in TABLES.items():
            query = f"SELECT {key} / {IDS_PER_UPLOAD}, count(*), sum({SUMS[table]}) FROM {table}"
            query += f" GROUP BY {key} / {IDS_PER_UPLOAD}"
            sums[table] = {
                upload: (count, round(float(total or 0), 3)) for upload, count, total in connection.execute(text(query))
            }
    lines = {
        row["sha256"]: (row["lines"], row["launches"], row["samples"]) for row in store.select(engine, "v1_uploads")
    }
    return {sha256: (lines[sha256], *(sums[table].get(upload) for table in TABLES)) for upload, sha256 in named}


def counted_results(engine: Engine) -> dict[str, list[int]]:
    """Return how many rows of each kind of results every run has, by its name."""
    with reading(engine) as connection:
        names = connection.execute(text("SELECT run_id, name FROM runs")).all()
        queries = [text(f"SELECT run_id, count(*) FROM {view} GROUP BY run_id") for view in RESULTS]
        found = [dict(connection.execute(query).all()) for query in queries]
    return {name: [counts.get(run_id, 0) for counts in found] for run_id, name in names}


def unowned(engine: Engine) -> list[str]:
    """Return the rows that belong to no upload, and the bytes that are stored twice."""
    wrong = []
    with reading(engine) as connection:
        for table, key in TABLES.items():
            query = (
                f"SELECT count(*) FROM {table} WHERE {key} / {IDS_PER_UPLOAD} NOT IN (SELECT upload_id FROM uploads)"
            )
            if count := connection.execute(text(query)).scalar_one():
                wrong.append(f"{count} rows of {table} belong to no upload")
        for table in schema.RESULTS:
            query = f"SELECT count(*) FROM {table} WHERE run_id NOT IN (SELECT run_id FROM runs)"
            if count := connection.execute(text(query)).scalar_one():
                wrong.append(f"{count} rows of {table} belong to no run")
        twice = "SELECT sha256 FROM uploads GROUP BY run_id, sha256 HAVING count(*) > 1"
        wrong += [f"{sha256} is stored twice" for sha256 in connection.execute(text(twice)).scalars()]
        empty = "SELECT name FROM runs WHERE run_id NOT IN (SELECT run_id FROM uploads)"
        wrong += [f"run {name!r} has no upload" for name in connection.execute(text(empty)).scalars()]
    return wrong


def damaged(engine: Engine) -> list[str]:
    """Return what the database finds wrong with itself."""
    file = file_of(engine)
    if file is None:
        return []
    with closing(sqlite3.connect(file)) as connection:
        said = [words for (words,) in connection.execute("PRAGMA integrity_check")]
        said += [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
    return [words for words in said if words != "ok"]


def unlisted(engine: Engine, files: store.BlobStore) -> list[str]:
    """Return what lies in the folder of kept bytes and is neither needed nor listed as waste."""
    with reading(engine) as connection:
        needed = {files.blob(sha256) for sha256 in connection.execute(text("SELECT sha256 FROM uploads")).scalars()}
    known = {*needed, *(path for part in cleanup.unneeded_files(engine, files) for path in part), files.folder / "lock"}
    return [f"{path} is left over" for path in files.folder.rglob("*") if path.is_file() and path not in known]
