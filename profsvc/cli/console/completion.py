"""Completion of commands and options by the shells bash, zsh and fish, as click writes it."""

import os
from pathlib import Path

from click import Group
from click.shell_completion import get_completion_class
from platformdirs import user_config_path, user_data_path

from profsvc.errors import UsageError, disk_error

VARIABLE = "_PROFSVC_COMPLETE"
SHELLS = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ""}
"""The shells, and the file of the home folder that reads the script of each; fish finds it by itself."""


def current_shell() -> str:
    """Return the user's shell."""
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise UsageError(f"the shell {shell!r} of the variable SHELL is not known; set it to {', '.join(SHELLS)}")
    return shell


def script(app: Group, shell: str) -> str:
    """Return the script that completes commands in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(app, {}, "profsvc", VARIABLE).source()


def install(app: Group) -> str:
    """Write the script of the user's shell to where it is read from; return what was written.

    A second call changes nothing.
    """
    shell = current_shell()
    folder = user_config_path("fish") / "completions" if shell == "fish" else user_data_path("profsvc")
    file = folder / ("profsvc.fish" if shell == "fish" else f"completion.{shell}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(script(app, shell), encoding="utf-8")
        if SHELLS[shell]:
            _source(Path.home() / SHELLS[shell], file)
    except OSError as error:
        raise disk_error(error, str(error.filename or file)) from None
    return f"written: {file}; it completes commands in every new {shell}"


def _source(startup: Path, file: Path) -> None:
    """Let the startup file of a shell read a script, unless it does."""
    line = f'source "{file}"\n'
    before = startup.read_text(encoding="utf-8") if startup.exists() else ""
    if line not in before:
        end = "" if before.endswith("\n") or not before else "\n"
        startup.write_text(f"{before}{end}{line}", encoding="utf-8")
