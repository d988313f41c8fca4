"""Compiles the splitter, and what makes pages of SQLite and rows for Postgres, if there is a C compiler.

The modules use the stable part of Python's C interface, so one file serves Python 3.11 and every later version.
``python -m profsvc.formats.splitter.build`` compiles them into a checkout, as installing does.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCE = FOLDER / "splitter.c"
STORE = FOLDER.parents[1] / "store" / "ingest" / "pages"
SOURCES = (SOURCE, STORE / "pages.c", STORE / "copies.c")
LEFT_OUT_VARIABLE = "PROFSVC_WITHOUT_COMPILER"
# A product and a sum in one step would be rounded once instead of twice, unlike the numbers of the other readers.
_FLAGS = ("-std=c11", "-O2", "-fPIC", "-ffp-contract=off", "-fno-fast-math", "-Wall", "-Wextra")
_TIMEOUT_S = 120


def target_of(source: Path) -> Path:
    """Return the file of the module that is made of a source.

    >>> target_of(SOURCE).name
    '_splitter.abi3.so'
    """
    return source.with_name(f"_{source.stem}.abi3.so")


def command(source: Path, target: Path, flags: Sequence[str] = ()) -> list[str] | None:
    """Return the command that compiles a module; None where no C compiler is found.

    >>> found = command(SOURCE, Path("module.so"))
    >>> Path(found[-1]).name if found else "module.so"
    'module.so'
    """
    link = shlex.split(sysconfig.get_config_var("LDSHARED") or "")
    if own := shlex.split(os.environ.get("CC", "")):
        link = [*own, *link[1:]]
    if not link or not shutil.which(link[0]):
        return None
    include = sysconfig.get_paths()["include"]
    return [*link, *_FLAGS, *flags, f"-I{include}", str(source), "-o", str(target)]


def compile_module(source: Path, target: Path, flags: Sequence[str] = ()) -> str:
    """Compile a module into the file ``target``; return why it could not be compiled, or nothing."""
    if os.environ.get(LEFT_OUT_VARIABLE):
        return f"{LEFT_OUT_VARIABLE} is set"
    parts = command(source, target.with_suffix(".new"), flags)
    if parts is None:
        return "no C compiler was found"
    try:
        done = subprocess.run(parts, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{parts[0]} could not run: {error}"
    if done.returncode:
        return f"{parts[0]} failed: {(done.stderr.strip() or 'without a message').splitlines()[0]}"
    # A process that has the old file open keeps it.
    target.with_suffix(".new").replace(target)
    return ""


def main() -> int:
    """Compile the modules into their folders; exit code 1 if one failed."""
    reasons = {source: compile_module(source, target_of(source)) for source in SOURCES}
    for source, reason in reasons.items():
        sys.stderr.write(f"{reason or target_of(source)}\n")
    return 1 if any(reasons.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
