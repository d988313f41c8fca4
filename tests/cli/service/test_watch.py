"""``watch``: what arrives is stored once and moved, whatever stops it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from profsvc.cli.service import watch
from profsvc.cli.service.watch import Watch
from tests.web import conftest
from tests.web.conftest import PLAIN, ROOT, SMI

service, site = (getattr(conftest, name) for name in ("service", "site"))
pytestmark = pytest.mark.usefixtures("unanalysed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in" / "night 1").mkdir(parents=True)
    return tmp_path / "in"


def once(cli, folder, *more):
    return cli("watch", folder, "--once", "--every", "0.05", *more)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_files_are_stored_and_moved(cli, folder) -> None:
    shutil.copy(PLAIN, folder / "a.csv")
    shutil.copy(SMI, folder / "night 1" / "smi.csv")
    (folder / "bad.csv").write_text("nothing that anybody knows\n")
    done = once(cli, folder, "--project", "lab", "--tag", "branch=main")
    assert done.code == 7, done.err
    assert names(folder) == ["done/a.csv", "done/night 1/smi.csv", "failed/bad.csv", "failed/bad.csv.reason.txt"]
    assert "unrecognized format" in (folder / "failed" / "bad.csv.reason.txt").read_text()
    assert "2 files stored, 1 refused" in done.err
    runs = json.loads(cli("runs", "-o", "json").out)["rows"]
    assert {(run["project"], run["name"]) for run in runs} == {("lab", "a"), ("lab", "night 1")}
    assert once(cli, folder).code == 0
    assert len(names(folder)) == 4


def test_the_same_bytes_are_one_upload_and_two_files(cli, folder) -> None:
    for _ in range(2):
        shutil.copy(PLAIN, folder / "a.csv.gz")
        assert once(cli, folder, "--run", "all").code == 0
    assert names(folder) == ["done/a-2.csv.gz", "done/a.csv.gz"]
    assert json.loads(cli("sql", "select count(*) as n from v1_uploads", "-o", "json").out)["rows"] == [{"n": 1}]


def test_what_is_not_finished_is_left_alone(cli, folder, tmp_path) -> None:
    for name in (".hidden.csv", "a.csv.part", "a.TMP", "b.csv~", "c.crdownload"):
        (folder / name).write_text("x")
    (folder / ".sync").mkdir()
    (folder / ".sync" / "a.csv").write_text("x")
    (tmp_path / "real.csv").write_text("x")
    (folder / "link.csv").symlink_to(tmp_path / "real.csv")
    before = names(folder)
    assert once(cli, folder).code == 0
    assert names(folder) == before


def test_what_is_no_file_of_the_folder_is_named_once(cli, folder, tmp_path) -> None:
    (folder / "link.csv").symlink_to("nowhere")
    (folder / "night 1" / "circle").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    done = once(cli, folder)
    assert done.code == 0
    assert [line for line in done.err.splitlines() if "left where it is" in line] == [
        f"{folder / 'link.csv'}: left where it is: {watch.LINK}",
        f"{folder / 'night 1' / 'circle'}: left where it is: {watch.LINK}",
        f"{folder / 'pipe'}: left where it is: it is a pipe, a socket or a device, not a file",
    ]
    seen = Watch(folder)
    seen.settled()
    assert len(list(seen.passed())) == 3
    seen.settled()
    assert list(seen.passed()) == []
    shutil.rmtree(folder)
    seen.settled()
    assert list(seen.passed()) == [(folder, "its files cannot be listed: No such file or directory")]


def test_a_file_is_settled_when_two_looks_see_the_same(folder) -> None:
    file, seen = folder / "a.csv", Watch(folder)
    file.write_text("a")
    assert seen.settled() == []
    file.write_text("ab")
    assert seen.settled() == []
    assert seen.settled() == [file]
    os.utime(file, ns=(1, 1))
    assert seen.settled() == []
    assert seen.settled() == [file]
    file.unlink()
    assert seen.settled() == []
    file.write_text("ab")
    other = folder / "night 1" / "b.csv"
    other.write_text("b")
    os.utime(other, ns=(5, 5))
    seen.settled()
    assert seen.settled() == [other, file]  # the older comes first
    seen.leave(file)
    assert seen.settled() == [other]


def test_what_cannot_be_moved_stays_and_is_not_taken_again(cli, folder, monkeypatch) -> None:
    shutil.copy(PLAIN, folder / "a.csv")
    (folder / "done").write_text("a file where a folder must be")
    done = once(cli, folder)
    assert "cannot be written" in done.err
    assert (folder / "a.csv").exists()


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("link", ["failed/bad.csv.reason.txt", "failed/bad.csv"])
def test_nothing_is_written_through_a_link(cli, folder, tmp_path, link, there) -> None:
    """Whoever may put files here may put links here, also to files that are not there yet."""
    target = tmp_path / "somebody's"
    if there:
        target.write_text("precious")
    (folder / "failed").mkdir()
    (folder / link).symlink_to(target)
    (folder / "bad.csv").write_text("nothing that anybody knows\n")
    assert once(cli, folder).code == 7
    assert target.exists() == there
    assert not there or target.read_text() == "precious"
    assert (folder / link).is_symlink()
    assert (folder / "failed" / "bad-2.csv").read_text() == "nothing that anybody knows\n"
    assert "unrecognized format" in (folder / "failed" / "bad-2.csv.reason.txt").read_text()
    assert not (folder / "bad.csv").exists()


@pytest.mark.parametrize("name", ["done", "done/night 1"])
def test_nothing_is_moved_through_a_link_to_a_folder(cli, folder, tmp_path, name) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(tmp_path / "elsewhere")
    shutil.copy(PLAIN, folder / "night 1" / "a.csv")
    done = once(cli, folder)
    assert "cannot be written" in done.err
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (folder / "night 1" / "a.csv").exists()


def test_a_folder_of_somebody_else_takes_no_file(cli, folder, monkeypatch) -> None:
    (folder / "done").mkdir()
    shutil.copy(PLAIN, folder / "a.csv")
    if os.geteuid() == 0:
        os.chown(folder / "done", 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
    done = once(cli, folder)
    assert "belongs to another user" in done.err
    assert (folder / "a.csv").exists()


def test_a_file_that_became_a_link_is_not_read(cli, folder, tmp_path, monkeypatch) -> None:
    (tmp_path / "secret").write_text("a secret of who watches")
    (folder / "a.csv").symlink_to(tmp_path / "secret")
    monkeypatch.setattr(Path, "is_symlink", lambda _: False)  # it was none when it was looked at
    done = once(cli, folder)
    assert "it was replaced by a link or another file while it was read" in done.err
    assert "it was replaced by a link" in (folder / "failed" / "a.csv.reason.txt").read_text()


def test_a_file_that_is_removed_before_its_turn_is_not_refused(cli, folder, monkeypatch) -> None:
    shutil.copy(PLAIN, folder / "a.csv")
    settled = Watch.settled

    def removed_after(seen: Watch) -> list[Path]:
        ready = settled(seen)
        for path in ready:
            path.unlink()
        return ready

    monkeypatch.setattr(Watch, "settled", removed_after)
    done = once(cli, folder)
    assert (done.code, "a.csv: it was removed before its turn, and nothing of it is stored" in done.err) == (0, True)
    assert names(folder) == []


def test_a_service_that_is_away_is_waited_for_in_the_folder(cli, folder, service, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("profsvc.client.connection.RETRY_DELAYS_S", ())
    monkeypatch.setenv("PROFSVC_SPOOL", str(tmp_path / "spool"))
    shutil.copy(PLAIN, folder / "night 1" / "a.csv")
    monkeypatch.setenv("PROFSVC_URL", "http://127.0.0.1:9")
    away = once(cli, folder)
    assert (away.code, "it stays and will be retried" in away.err) == (0, True)
    assert names(folder) == ["night 1/a.csv"]
    assert not (tmp_path / "spool").exists()
    monkeypatch.setenv("PROFSVC_URL", service.url)
    assert once(cli, folder).code == 0
    assert names(folder) == ["done/night 1/a.csv"]
    assert service.ok("/v1/runs")["rows"][0]["name"] == "night 1"


def test_names_that_are_no_text_are_watched_too(cli, folder) -> None:
    shutil.copy(PLAIN, os.fsencode(folder) + b"/night 1/a\xff\x1b[31m.csv")
    done = once(cli, folder)
    assert done.code == 0, done.err
    assert "\x1b" not in done.err
    assert os.listdir(os.fsencode(folder / "done" / "night 1")) == [b"a\xff\x1b[31m.csv"]  # noqa: PTH208  # a name that is no text


def test_a_folder_that_is_not_is_said(cli, tmp_path) -> None:
    refused = cli("watch", tmp_path / "no")
    assert (refused.code, "no folder" in refused.err) == (3, True)


def test_a_watch_that_is_killed_goes_on_where_it_was(cli, store_file, folder) -> None:
    contents = PLAIN.read_text()
    for number in range(6):
        (folder / f"f{number}.csv").write_text(contents.replace("saxpy", f"kernel{number}"))
    for sign in (signal.SIGKILL, signal.SIGINT):
        with started(store_file, folder) as process:
            assert process.stderr
            for text in process.stderr:
                if "stored as upload" in text:
                    break
            process.send_signal(sign)
            said = process.stderr.read()
        assert "Traceback" not in said
        assert (process.returncode, sign) in {(-9, signal.SIGKILL), (0, signal.SIGINT)}
        if sign is signal.SIGINT:
            assert re.search(r"\d+ files? stored, 0 refused", said)
    assert once(cli, folder).code == 0
    assert len(names(folder / "done")) == 6
    assert json.loads(cli("sql", "select count(*) as n from v1_uploads", "-o", "json").out)["rows"] == [{"n": 6}]


def started(store_file: Path, folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "profsvc", "--store", str(store_file), "watch", str(folder), "--every", "0.05"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROFSVC_")}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def test_an_empty_file_that_a_kill_left_is_replaced(cli, folder) -> None:
    (folder / "done").mkdir()
    (folder / "done" / "a.csv").touch()
    shutil.copy(PLAIN, folder / "a.csv")
    assert once(cli, folder).code == 0
    assert {path.name: path.stat().st_size > 0 for path in (folder / "done").iterdir()} == {"a.csv": True}


def test_files_of_the_watch_itself_are_not_watched(folder) -> None:
    for name in ("done", "failed"):
        (folder / name).mkdir()
        (folder / name / "a.csv").write_text("x")
    (folder / "night 1" / "done").mkdir()
    (folder / "night 1" / "done" / "b.csv").write_text("x")
    seen = Watch(folder)
    seen.settled()
    assert seen.settled() == [folder / "night 1" / "done" / "b.csv"]
    assert (
        watch.moved(folder, folder / "night 1" / "done" / "b.csv", "done").parent
        == folder / "done" / "night 1" / "done"
    )


def test_files_are_dated_by_when_they_were_written(cli, folder) -> None:
    shutil.copy(PLAIN, folder / "a.csv")
    os.utime(folder / "a.csv", (1_790_000_000, 1_790_000_000))
    assert once(cli, folder, "--at", "file").code == 0
    (row,) = json.loads(cli("sql", "select received_at from v1_uploads", "-o", "json").out)["rows"]
    assert row["received_at"] == "2026-09-21T14:13:20Z"
    refused = once(cli, folder, "--at", "2026-10-24")
    assert (refused.code, "watch takes --at file" in refused.err) == (2, True)


def test_a_month_of_nights_is_dated_by_its_files(cli, tmp_path) -> None:
    for night, seconds in (("n1", 1_788_000_000), ("n2", 1_788_086_400)):
        file = tmp_path / f"{night}.csv"
        shutil.copy(PLAIN, file)
        os.utime(file, (seconds, seconds))
        assert cli("upload", file, "--run", night, "--at", "file").code == 0
    rows = json.loads(cli("sql", "select name, started_at from v1_runs order by name", "-o", "json").out)["rows"]
    assert [row["started_at"] for row in rows] == ["2026-08-29T10:40:00Z", "2026-08-30T10:40:00Z"]
    refused = cli("upload", "-", "--at", "file")
    assert (refused.code, "stdin has no file time" in refused.err) == (2, True)
