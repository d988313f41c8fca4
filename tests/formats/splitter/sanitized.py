"""Compiles the splitter with sanitizers and runs it on random blocks; ``--minutes`` says for how long."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from profsvc.formats.splitter import build

FLAGS = ("-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def run(seconds: float, seed: int) -> tuple[int | None, str]:
    """Return the exit code and what was printed; no exit code where the sanitizers cannot be used."""
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "_splitter.abi3.so"
        if reason := build.compile_module(build.SOURCE, module, FLAGS):
            return None, reason
        libraries = []
        compiler = (build.command(build.SOURCE, module) or [""])[0]
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
            [sys.executable, "-S", str(Path(__file__).with_name("fuzz.py")), str(module), str(seconds), str(seed)],
            env=os.environ | more, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.formats.splitter.sanitized", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    code, printed = run(options.minutes * 60, options.seed)
    sys.stdout.write(printed + "\n")
    return 2 if code is None else code


if __name__ == "__main__":
    raise SystemExit(main())
