"""Units, container file and compose: what stands in them is valid, and the commands inside are those of the program."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url

from profsvc import store
from tests.cli.conftest import COMMANDS, Call, cli, store_file

__all__ = ["cli", "store_file"]

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / ".deploy"
UNITS = ("profsvc.service", "profsvc-backup.service", "profsvc-backup.timer")
GROUP: Any = COMMANDS


def unit(name: str) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None, strict=False)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(DEPLOY / name, encoding="utf-8")
    return found


def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def commands() -> dict[str, list[str]]:
    """Return the arguments of profsvc wherever these files call it."""
    container = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    started = re.search(r'^CMD (\["profsvc".*\])$', container, re.MULTILINE)
    assert started
    service = compose()["services"]["service"]["command"][-1].replace("$${SERVER_NAME:-localhost}", "localhost")
    return {
        "service": shlex.split(unit("profsvc.service")["Service"]["ExecStart"])[1:],
        "backup": shlex.split(shlex.split(unit("profsvc-backup.service")["Service"]["ExecStart"])[2])[2:],
        "container": yaml.safe_load(started[1])[1:],
        "compose": shlex.split(service[service.index("exec profsvc") :])[2:],
    }


@pytest.mark.parametrize("place", ["service", "backup", "container", "compose"])
def test_the_program_knows_its_arguments(place: str) -> None:
    words = commands()[place]
    command, context = GROUP, GROUP.make_context("profsvc", list(words), resilient_parsing=True)
    while hasattr(command, "get_command"):
        name, *words = words
        command = command.get_command(context, name)
        assert command is not None, name
        context = command.make_context(
            name, list(words), parent=context, resilient_parsing=hasattr(command, "commands")
        )


def test_compose_takes_any_password_and_none_is_an_error(tmp_path: Path) -> None:
    command = compose()["services"]["service"]["command"]
    script = command[-1].replace("$$", "$").replace("/run/secrets/password", str(tmp_path / "password"))
    (tmp_path / "profsvc").write_text('#!/bin/sh\nprintf "%s\\n" "$PROFSVC_STORE" "$PGPASSWORD" "$@"\n')
    (tmp_path / "profsvc").chmod(0o755)

    def start() -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SERVER_NAME": "prof.lab"}
        return subprocess.run([*command[:2], script], env=environment, capture_output=True, text=True, check=False)

    assert start().returncode != 0
    password = """50%41 a/b@c:d#'"$HOME"""
    (tmp_path / "password").write_text(password + "\n")
    url, secret, *words = start().stdout.splitlines()
    assert (make_url(url).render_as_string(), secret) == ("postgresql://profsvc@database/profsvc", password)
    assert words[0] == "serve"
    assert words[-1] == "prof.lab"


def test_the_backup_of_the_unit_is_a_store(cli: Call, tmp_path: Path) -> None:
    assert cli("upload", ROOT / "fixtures" / "ncu_raw" / "plain.csv", "--run", "today").code == 0
    words = [
        word.replace("/var/lib/profsvc-backup/$(date +%%F)", str(tmp_path / "copy")) for word in commands()["backup"]
    ]
    assert cli(*words).code == 0
    engine = store.open_store(str(tmp_path / "copy.sqlite"))
    assert [row["name"] for row in store.select(engine, "v1_runs")] == ["today"]
    engine.dispose()
    assert (tmp_path / "copy.sqlite.files").is_dir()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_unit(name: str, tmp_path: Path) -> None:
    for one in UNITS:
        text = (DEPLOY / one).read_text(encoding="utf-8").replace("/opt/profsvc/bin/profsvc", "/bin/true")
        (tmp_path / one).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line or name in line]
    assert not said, said


def test_the_service_is_confined() -> None:
    service = unit("profsvc.service")["Service"]
    for key in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictNamespaces"):
        assert service[key] == "yes"
    assert service["ProtectSystem"] == "strict"
    container = compose()["services"]["service"]
    assert (container["read_only"], container["cap_drop"]) == (True, ["ALL"])
    assert "ports" not in container  # only the proxy is reached from outside
    assert "ports" not in compose()["services"]["database"]


def test_the_container_has_what_a_build_needs() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    assert {path for line in copied for path in line.split()} == {
        "pyproject.toml", "README.md", "profsvc", "migrations", "fixtures/demo",
    }  # fmt: skip
    assert all((ROOT / path).exists() for line in copied for path in line.split())
    assert re.search(r"^USER profsvc$", text, re.MULTILINE)


def test_compose_names_only_what_it_has() -> None:
    found = compose()
    for service in found["services"].values():
        assert set(service.get("secrets", ())) <= set(found["secrets"])
        assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= set(found["volumes"])
        assert set(service.get("depends_on", ())) <= set(found["services"])
        assert "latest" not in service.get("image", "")
