"""Completion of commands by shells: the script, where it is written, and what it completes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profsvc.cli.console.completion import SHELLS

ROOT = Path(__file__).parents[3]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {
        "HOME": tmp_path,
        "XDG_DATA_HOME": tmp_path / "data",
        "XDG_CONFIG_HOME": tmp_path / "c",
    }.items():
        monkeypatch.setenv(name, str(value))
    return tmp_path


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_shown_and_installed_once(cli, home: Path, monkeypatch, shell: str) -> None:
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    script = cli("--show-completion").out
    assert "_PROFSVC_COMPLETE" in script
    (home / ".bashrc").write_text("first", encoding="utf-8")
    said = cli("--install-completion").err
    startup = (home / SHELLS[shell]).read_text(encoding="utf-8") if SHELLS[shell] else ""
    file = Path(said.removeprefix("written: ").partition(";")[0])
    assert file.read_text(encoding="utf-8") == script.removesuffix("\n")
    cli("--install-completion")
    if SHELLS[shell]:
        assert (home / SHELLS[shell]).read_text(encoding="utf-8") == startup
        assert startup == ("first\n" if shell == "bash" else "") + f'source "{file}"\n'


def test_another_shell_is_refused(cli, home: Path, monkeypatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    refused = cli("--install-completion")
    assert (refused.code, "tcsh" in refused.err, "bash, zsh, fish" in refused.err) == (2, True, True)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("profsvc ru", "runs"), ("profsvc findings se", "set"), ("profsvc runs --lim", "--limit")],
)
def test_words_are_completed(words: str, wanted: str) -> None:
    given = words.split()
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['profsvc']; from profsvc.cli import main; main()"],
        env=os.environ | {"_PROFSVC_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(given) - 1)},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.stdout.split() == [f"plain,{wanted}"], done.stderr
