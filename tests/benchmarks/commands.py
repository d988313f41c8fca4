"""What commands take as whole processes, as multiples of a start of Python that does nothing.

    python -m tests.benchmarks.commands [WORD ...] [--rounds 9] [--store FILE]

The store holds the demo's page of Nsight Compute, 34 launches; ``--store`` gives another SQLite file instead. Words
choose commands whose first word is one of them. All run in turn, round after round, beside ``python -c ''``. Printed is
the processor time of user and system, the median of the rounds, and its ratio to that of Python in the same rounds,
which other work on the machine changes least. Modules are compiled before, as installing does. Where a ratio has a
limit, the exit code is 1 above it. The last lines are of ``profsvc serve``: until it answers, and its first pages.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.command_line import parser_of
from tests.conftest import DEMO, ROOT

# The words of a command, and how many starts of Python it may take at most, where that was agreed.
COMMANDS: dict[tuple[str, ...], float | None] = {
    ("--version",): None,
    ("--help",): None,
    ("upload", "--help"): None,
    ("formats",): None,
    ("settings",): None,
    ("runs",): 14,
    ("sql", "select 1"): 14,
    ("show", "1"): 24,
    ("show", "1", "--kernel", "gemm_naive"): None,
    ("findings", "list"): None,
    ("devices",): None,
    ("models",): None,
    ("token", "list"): None,
    ("db", "current"): None,
    ("explain", "divergence"): None,
    ("explain", "divergence", "--run", "1"): None,
    ("history", "gemm_naive"): None,
    ("compare", "1", "1"): None,
    ("versions", "1"): None,
    ("whatif", "1"): None,
    ("report", "nightly", "--dry-run"): None,
    ("doctor",): None,
    ("upload", "--run", "run", str(DEMO)): None,  # a file that is stored already
}
PAGES = ("/livez", "/", "/runs/1", "/v1/runs", "/compare?before=1&after=1")
BARE = ("-c", "")


class Took(NamedTuple):
    """Milliseconds of the processor, and by the clock."""

    cpu: float
    clock: float


def environment(folder: Path, store: Path) -> dict[str, str]:
    """Return the environment of a user whose Python keeps compiled modules, in a folder of their own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PROFSVC_", "PYTHON"))}
    return own | {"PROFSVC_STORE": str(store), "PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONPATH": str(ROOT)}


def ran(words: Sequence[str], env: Mapping[str, str]) -> Took:
    """Run Python with these words; return what the process took."""
    began = time.perf_counter()
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([sys.executable, *words], env=env, stderr=said, **quiet)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        assert not process.returncode, f"{words}: {said.read().decode()}"
    return Took(1e3 * (used.ru_utime + used.ru_stime), 1e3 * (time.perf_counter() - began))


def measured(commands: Sequence[tuple[str, ...]], env: Mapping[str, str], rounds: int) -> dict[tuple[str, ...], Took]:
    """Return the medians of each command, and under no words those of Python alone."""
    words = {(): BARE} | {command: ("-m", "profsvc", *command) for command in commands}
    took: dict[tuple[str, ...], list[Took]] = {command: [] for command in words}
    for number in range(rounds + 1):
        for command, given in words.items():
            one = ran(given, env)
            if number:  # the first round compiles modules
                took[command].append(one)
    return {command: Took(*map(statistics.median, zip(*found, strict=True))) for command, found in took.items()}


def cpu_ms(process: int) -> float:
    """Return the milliseconds of the processor that all threads of another process took until now."""
    return 1e3 * time.clock_gettime((~process << 3) | 2)  # how Linux numbers the clocks of processes


def service(env: Mapping[str, str]) -> Iterator[tuple[str, Took]]:
    """Start the service; yield what it takes until it answers, and of each page the first and the second time."""
    began = time.perf_counter()
    words = ["-m", "profsvc", "serve", "--port", "0"]
    with subprocess.Popen([sys.executable, *words], env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        yield "serve, until it answers", Took(cpu_ms(process.pid), 1e3 * (time.perf_counter() - began))
        with httpx.Client(base_url=url, timeout=60, headers={"accept": "text/html"}) as http:
            for path in PAGES:
                for which in ("first", "second"):
                    before, began = cpu_ms(process.pid), time.perf_counter()
                    http.get(path).raise_for_status()
                    clock = 1e3 * (time.perf_counter() - began)
                    yield f"{path}, {which} time", Took(cpu_ms(process.pid) - before, clock)
        process.send_signal(signal.SIGINT)
        process.stderr.read()


def _line(name: str, took: Took, bare: Took, limit: float | None = None) -> bool:
    """Print a line; return whether it keeps to its limit."""
    ratio = took.cpu / bare.cpu
    said = f"at most {limit:g}" if limit else ""
    print(f"{name:38}{took.cpu:9.1f}{took.clock:9.1f}{ratio:8.1f}  {said}{'  SLOW' if limit and ratio > limit else ''}")
    return not limit or ratio <= limit


def main() -> int:
    """Print the times; return 1 where a command takes longer than it may."""
    parser = parser_of(__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--store", type=Path)
    wanted = parser.parse_args()
    chosen = [command for command in COMMANDS if not wanted.words or command[0] in wanted.words]
    with tempfile.TemporaryDirectory() as folder:
        env = environment(Path(folder), (wanted.store or Path(folder, "store.sqlite")).absolute())
        if not wanted.store:
            ran(["-m", "profsvc", "upload", "--run", "run", str(DEMO)], env)
        print(f"{'':38}{'CPU ms':>9}{'clock ms':>9}{'ratio':>8}")
        found = measured(chosen, env, wanted.rounds)
        bare = found.pop(())
        _line("python -c ''", bare, bare)
        kept = [
            _line(" ".join(Path(word).name for word in command), took, bare, COMMANDS[command])
            for command, took in found.items()
        ]
        if not wanted.words or "serve" in wanted.words:
            for name, took in service(env):
                _line(name, took, bare)
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
