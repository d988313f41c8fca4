"""The file system of a store, by the mounts of the machine."""

from pathlib import Path

import pytest

from profsvc.store.connection import filesystem
from profsvc.store.connection.filesystem import file_system, journal_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/home/me/a.sqlite", "nfs4"), ("/srv/with space/a", "fuse.sshfs"), ("/tmp/a", "tmpfs"), ("/a", "ext4")],
)
def test_the_file_system_is_that_of_the_nearest_mount(path: str, kind: str, tmp_path: Path, monkeypatch) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        "2 1 0:2 / /home rw shared:1 - ext4 /dev/sdb rw\n"
        "3 2 0:3 / /home rw,relatime shared:2 - nfs4 host:/home rw\n"
        "4 1 0:4 / /srv/with\\040space rw - fuse.sshfs host: rw\n"
        "5 1 0:5 / /tmp rw - tmpfs tmpfs rw\n"
    )
    assert file_system(Path(path), table) == kind
    monkeypatch.setattr(filesystem, "wal_is_safe", lambda: True)
    monkeypatch.setattr(filesystem, "file_system", lambda _: kind)
    assert journal_of(Path(path)) == ("wal" if kind in {"ext4", "tmpfs"} else "delete")
    assert file_system(Path(path), tmp_path / "none") is None
