"""Compiles the modules in C with sanitizers and asks them about random blocks; ``--minutes`` says for how long."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from profsvc.formats.splitter import build
from tests.command_line import parser_of
from tests.conftest import ROOT

FLAGS = ("-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Source -> what asks a module compiled of it, and compares its answers with those of plain Python.
ASKED_BY = {
    source: ROOT / "tests" / source.relative_to(ROOT / "profsvc").with_name("fuzz.py") for source in build.SOURCES
}


def run(source: Path, seconds: float, seed: int) -> tuple[int | None, str]:
    """Return the exit code and what was printed; no exit code where the sanitizers cannot be used."""
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / build.target_of(source).name
        if reason := build.compile_module(source, module, FLAGS):
            return None, reason
        libraries = []
        compiler = (build.command(source, module) or [""])[0]
        for name in ("libasan.so", "libubsan.so"):
            found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
            if not Path(found.stdout.strip()).is_absolute():
                return None, f"{compiler} has no {name}"
            libraries.append(str(Path(found.stdout.strip()).resolve()))
        # The interpreter keeps memory for ever, and its own allocator would hide what lies behind an object.
        more = {
            "LD_PRELOAD": ":".join(libraries),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
        }
        done = subprocess.run(
            [sys.executable, "-S", str(ASKED_BY[source]), str(module), str(seconds), str(seed)],
            env=os.environ | more, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr


def main() -> int:
    sources = {source.stem: source for source in build.SOURCES}
    parser = parser_of(__doc__)
    parser.add_argument("module", choices=list(sources), nargs="?", help="one of the modules; all if left out")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each module")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    codes = []
    for name in [options.module] if options.module else sources:
        code, printed = run(sources[name], options.minutes * 60, options.seed)
        sys.stdout.write(f"{name}: {printed}\n")
        codes.append(2 if code is None else code)
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
