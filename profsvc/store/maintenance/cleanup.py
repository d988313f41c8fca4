"""Remove unused files of a store, and return free space to the disk."""

from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from profsvc.errors import NoSpaceError, ServiceError, counted
from profsvc.store.connection.errors import translate_errors
from profsvc.store.connection.sql import Engine, text
from profsvc.store.connection.transactions import exclusive_writer, reading, writing
from profsvc.store.connection.urls import address, file_of
from profsvc.store.ingest import blob_store
from profsvc.store.ingest.blob_store import BlobStore
from profsvc.store.ingest.staging import orphaned_folders


class UnneededFiles(NamedTuple):
    """Unused files of uploads that were killed before their rows were committed."""

    leftovers: list[Path]
    orphans: list[Path]


def unneeded_files(engine: Engine, files: BlobStore) -> UnneededFiles:
    """Return the unused files in the folder of kept bytes; those of running uploads are included."""
    lying = blob_store.stored_blobs(files)
    needed = _needed(engine)
    file = file_of(engine)
    places = orphaned_folders(file) if file is not None else []
    return UnneededFiles(
        [*blob_store.orphaned_spool_files(files), *places],
        [path for sha256, path in lying.items() if sha256 not in needed],
    )


def _needed(engine: Engine) -> set[str]:
    with reading(engine) as connection:
        return {
            sha256
            for table in ("uploads", "deleted_uploads")
            for (sha256,) in connection.execute(text(f"SELECT sha256 FROM {table}"))
        }


def remove_unneeded(engine: Engine, files: BlobStore) -> int:
    """Remove unused files while no upload is running; return the number of bytes freed."""
    with blob_store.removing_blobs(files):
        found = unneeded_files(engine, files)
        return blob_store.remove_files([*found.leftovers, *found.orphans])


def discard_blob(engine: Engine, files: BlobStore | None, sha256: str) -> None:
    """Remove the kept bytes of a file whose commit failed; during other uploads this is left to a later cleanup."""
    if files is None:
        return
    with suppress(ServiceError), blob_store.removing_blobs(files, seconds=0.1):
        if sha256 not in _needed(engine):
            blob_store.remove_files([files.blob(sha256)])


def vacuum(engine: Engine, files: BlobStore) -> tuple[int, int]:
    """Remove deleted data permanently, and return free space of the database to the disk.

    Return the number of bytes freed in the kept files and in the database. Earlier deletions can no longer be undone.
    """
    before = _size(engine)
    with blob_store.removing_blobs(files):
        with writing(engine) as connection:
            connection.execute(text("DELETE FROM deleted_uploads"))
        freed = remove_unneeded(engine, files)
    try:
        _return_space(engine)
    except NoSpaceError as error:
        raise NoSpaceError(
            f"the deleted uploads are removed, {counted(freed, 'byte')} of kept files with them, but the database did "
            f"not become smaller: to write its second copy {address(engine)} needs {counted(before, 'free byte')}; "
            "free some space and run profsvc db vacuum again"
        ) from error
    return freed, max(0, before - _size(engine))


def _return_space(engine: Engine) -> None:
    with exclusive_writer(engine), translate_errors(engine), engine.connect() as connection:
        if file_of(engine) is None:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM (ANALYZE)")
        else:
            driver: Any = connection.connection.driver_connection
            driver.execute("VACUUM")
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _size(engine: Engine) -> int:
    file = file_of(engine)
    if file is not None:
        return sum(path.stat().st_size for path in (file, Path(f"{file}-wal")) if path.exists())
    with reading(engine) as connection:
        return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
