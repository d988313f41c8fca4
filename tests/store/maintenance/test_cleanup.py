"""Space given back for good."""

from sqlalchemy import Engine

from profsvc import pipeline, store
from profsvc.store.ingest.blob_store import BlobStore


def test_vacuum_removes_deleted_uploads_for_good(full: Engine, files: BlobStore) -> None:
    sha256 = store.upload(full, 3)["sha256"]
    size = files.blob(sha256).stat().st_size
    orphan = files.blob("ab" * 32)
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(b"x" * 100)
    (files.spool / "1-left.zst").write_bytes(b"y" * 10)
    store.delete_run(full, 2)
    assert store.vacuum(full, files)[0] == size + 110
    assert not files.blob(sha256).exists()
    assert store.deleted_uploads(full) == []
    for number in (1, 2):
        pipeline.reparse(full, files, number)
