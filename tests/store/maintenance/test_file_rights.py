"""Who may read the files of a SQLite store."""

import os
from pathlib import Path

from profsvc import store
from tests.store.conftest import COUNTERS, batches, info


def test_what_a_store_makes_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        engine = store.open_store(str(tmp_path / "new.sqlite"), COUNTERS)
        store.write_upload(engine, info(), store.RunInfo(name="first"), batches())
        store.backup(engine, tmp_path / "copy.sqlite")
        engine.dispose()
    finally:
        os.umask(before)
    rights = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.is_file()}
    assert {"new.sqlite", "new.sqlite.lock", "copy.sqlite"} <= rights.keys()
    assert set(rights.values()) == {0o600}


def test_rights_that_somebody_gave_stay(tmp_path: Path) -> None:
    file = tmp_path / "shared.sqlite"
    file.touch()
    file.chmod(0o660)
    store.open_store(str(file), COUNTERS).dispose()
    assert file.stat().st_mode & 0o777 == 0o660
