"""Schedules and channels as a person has them: added, listed, run, sent; ``scheduler`` and ``serve`` as processes."""

import getpass
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from profsvc import store
from tests.channels.sinks import mail_server
from tests.web.conftest import PLAIN, ROOT


@pytest.fixture
def channels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of channels: a folder that takes reports, one that does not, and a mail server that does not respond."""
    (tmp_path / "blocked").write_text("")
    text = f'[archive]\nkind = "file"\nfolder = "{tmp_path}/reports"\n[bad]\nkind="file"\nfolder="{tmp_path}/blocked"\n'
    (tmp_path / "channels.toml").write_text(text)
    monkeypatch.setenv("PROFSVC_CHANNELS", str(tmp_path / "channels.toml"))
    return tmp_path / "reports"


def rows(cli, *command) -> list[dict]:
    return json.loads(cli(*command, "-o", "json").out)["rows"]


def test_schedules_are_added_listed_and_removed(cli, channels) -> None:
    daily = ("--cron", "0 6 * * *", "--zone", "Europe/Berlin")
    added = cli("schedule", "add", "nightly", *daily, "--project", "lab", "--channel", "archive")
    assert added.code == 0, added.err
    assert re.search(r"schedule 1: nightly, next at 20\d\d-\d\d-\d\dT0[45]:00:00Z", added.err)
    assert cli("schedule", "add", "backup", *daily, "--set", "folder=/b", "--set", "keep=3").code == 0
    first, second = rows(cli, "schedule", "list")
    assert (first["project"], json.loads(first["arguments"])) == ("lab", {"channel": ["archive"]})
    assert json.loads(second["arguments"]) == {"folder": "/b", "keep": 3, "with_files": False}
    assert cli("schedule", "pause", 1).code == 0
    assert rows(cli, "schedule", "list")[0]["enabled"] == 0
    assert cli("schedule", "resume", 1).code == 0
    assert cli("schedule", "rest", 1).err == "schedule 1 paused\n"  # the name of this command before 0.9
    assert "rest" not in cli("schedule", "--help").out
    assert cli("schedule", "remove", 1).code == 0
    assert [row["schedule_id"] for row in rows(cli, "schedule", "list")] == [2]
    assert cli("schedule", "remove", 1).code == 3


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("nightl", "--cron", "0 6 * * *"), 3, "did you mean 'nightly'"),
        (("nightly", "--cron", "6 Uhr"), 2, "must have five fields"),
        (("nightly", "--cron", "0 6 * * *", "--zone", "Berlin"), 2, "no time zone is named"),
        (("nightly", "--cron", "0 6 * * *", "--channel", "archiv"), 3, "did you mean 'archive'"),
        (
            ("prune", "--cron", "0 6 * * *"),
            2,
            "prune needs older_than: --set older_than=..., at least 1h, in h, d or w, such as 90d",
        ),
        (("backup", "--cron", "0 6 * * *", "--set", "folder"), 2, "must look like KEY=VALUE"),
        (("vacuum", "--cron", "0 6 * * *", "--project", "lab"), 2, "vacuum always covers every project"),
    ],
)
def test_what_cannot_be_meant_is_refused(cli, channels, command, code, said) -> None:
    refused = cli("schedule", "add", *command)
    assert refused.code == code
    assert said in refused.err
    assert rows(cli, "schedule", "list") == []


def test_a_night_is_reported_to_its_channels_when_somebody_asks(cli, channels, store_file) -> None:
    assert cli("upload", PLAIN, "--project", "lab").code == 0
    cli("schedule", "add", "nightly", "--cron", "0 6 * * *", "--channel", "archive")
    ran = cli("schedule", "run", 1)
    assert ran.code == 0, ran.err
    assert "no series could be judged" in ran.err
    assert len(list(channels.iterdir())) == 4
    cli("schedule", "add", "nightly", "--cron", "0 6 * * *", "--channel", "bad", "--channel", "archive")
    failed = cli("schedule", "run", 2)
    assert failed.code == 5
    assert "was not delivered to bad:" in failed.err
    assert "a scheduler will retry it" in failed.err
    last = rows(cli, "sql", "select last_state, last_deliveries from v1_schedules where schedule_id = 2")[0]
    assert last["last_state"] == "waiting"
    assert json.loads(last["last_deliveries"])["archive"].startswith("delivered 20")


def test_a_report_is_sent_as_it_is_made(cli, channels) -> None:
    assert cli("upload", PLAIN).code == 0
    sent = cli("report", "nightly", "--channel", "archive", "--channel", "archive")
    assert sent.code == 0, sent.err
    assert sent.err.count("archive: delivered:") == 1
    bad = cli("report", "nightly", "--channel", "bad", "--channel", "archive")
    assert (bad.code, "stored, but was not delivered to bad" in bad.err) == (5, True)
    assert "archive: delivered:" in bad.err
    listed = cli("report", "nightly", "--list")
    assert (listed.code, listed.err) == (0, "")
    assert "  all  report 1: " in listed.out
    assert listed.out.count("archive (file) delivered 20") == 2
    assert "bad (file) not delivered 20" in listed.out
    (report,) = json.loads(cli("report", "nightly", "--list", "-o", "json").out)["reports"]
    assert [(one["channel"], one["delivered"]) for one in report["deliveries"]] == [
        ("archive", 1), ("bad", 0), ("archive", 1)]  # fmt: skip
    assert {one["sent_by"] for one in report["deliveries"]} == {getpass.getuser()}
    for form in ("md", "csv"):
        refused = cli("report", "nightly", "--list", "-o", form)
        assert refused.code == 2
        assert "choose one of text, json; as rows: profsvc sql" in refused.err
    assert cli("report", "nightly", "--channel", "nobody").code == 3
    assert cli("report", "nightly", "--channel", "archive", "--dry-run").code == 2


def test_channels_are_listed_and_tried(cli, channels, tmp_path, monkeypatch) -> None:
    with mail_server() as box:
        text = f'[team]\nkind="smtp"\nhost="127.0.0.1"\nport={box.port}\nsecurity="none"\nsender="a@lab.example"\n'
        file = tmp_path / "channels.toml"
        file.write_text(f'{file.read_text()}{text}to=["b@lab.example"]\n[chat]\nkind="slack"\nurl_env="HOOK"\n')
        monkeypatch.setenv("HOOK", "https://hooks.lab.example/s3cret")
        listed = cli("channels", "list", "-o", "csv")
        assert listed.out.splitlines()[1:] == [
            f"archive,file,{channels}",
            f"bad,file,{tmp_path}/blocked",
            "team,smtp,b@lab.example",
            "chat,slack,the address in its secret",
        ]
        tried = cli("channels", "test", "team", "archive")
        assert tried.code == 0, tried.err
        assert box.mails()[0]["subject"] == "profsvc: a test of the channel team"
    failed = cli("channels", "test", "bad")
    assert (failed.code, "bad: not delivered" in failed.err) == (5, True)
    assert cli("channels", "test", "nobody").code == 3
    monkeypatch.setenv("PROFSVC_CHANNELS", "")
    assert "reports are sent nowhere" in cli("channels", "list").err
    monkeypatch.setenv("PROFSVC_CHANNELS", str(tmp_path / "none.toml"))
    assert cli("channels", "list").code == 2


def started(store_file: Path, *command: str) -> "subprocess.Popen[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROFSVC_")}
    whole = [sys.executable, "-m", "profsvc", "--store", str(store_file), *command]
    return subprocess.Popen(whole, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def missed(engine: Engine) -> None:
    """Let the schedule of the store have missed its times since a year ago."""
    from profsvc.store.connection.transactions import writing

    with writing(engine) as connection:
        connection.exec_driver_sql("UPDATE schedules SET since = '2025-01-01T00:00:00Z'")


@pytest.mark.parametrize("command", [("scheduler",), ("serve", "--port", "0")])
def test_a_process_works_off_what_was_missed_and_ends_when_it_is_told(cli, store_file, tmp_path, command) -> None:
    added = cli("schedule", "add", "backup", "--cron", "0 6 * * *", "--set", f"folder={tmp_path}/backups")
    assert added.code == 0
    engine = store.connect(str(store_file))
    missed(engine)
    with started(store_file, *command) as process:
        end = time.monotonic() + 120
        while not list((tmp_path / "backups").glob("*Z.sqlite")) and time.monotonic() < end:
            time.sleep(0.05)
        while store.select(engine, "v1_slots")[0]["state"] != "done" and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.stderr
        said = process.stderr.read()
    assert "Traceback" not in said
    assert process.returncode == 0
    events = [json.loads(line)["event"] for line in said.splitlines() if line.startswith("{")]
    assert events[-1] == "scheduler stopped"
    assert ("slot done" in events) or command[0] == "serve"  # its log may begin after that
    (slot,) = store.select(engine, "v1_slots")
    assert (slot["state"], slot["attempts"]) == ("done", 1)


def test_a_service_may_leave_the_schedules_to_others(cli, store_file, tmp_path) -> None:
    cli("schedule", "add", "backup", "--cron", "* * * * *", "--set", f"folder={tmp_path}/backups")
    missed(store.connect(str(store_file)))
    with started(store_file, "serve", "--port", "0", "--no-schedule") as process:
        assert process.stderr
        said = [process.stderr.readline() for _ in range(4)]
        found = re.search(r"export PROFSVC_URL=(\S+)", "".join(said))
        assert found
        rows = httpx.get(f"{found[1]}/v1/schedules", timeout=20).json()["rows"]
        process.send_signal(signal.SIGINT)
    assert rows[0]["last_state"] is None
    assert not (tmp_path / "backups").exists()
