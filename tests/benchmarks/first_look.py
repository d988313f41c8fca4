"""From `profsvc demo --serve` to what it is for: how long until the service answers, and with what.

python -m tests.benchmarks.first_look
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import httpx

from tests.command_line import parser_of

LIMIT_S = 60.0
# What is waited for, and the path whose rows are it.
WANTED = {
    "a run": "/v1/runs",
    "its criteria": "/v1/criteria?limit=1",
    "its power": "/v1/power?limit=1",
    "a report of the night": "/v1/reports",
}
# The pages that show them, and a text that must be seen there.
PAGES = {"/": "h200", "/runs/1": "gemm_naive", "/runs/1/power": "power.draw.instant", "/reports/1": "nothing changed"}


def until(is_so: Callable[[], bool], began: float) -> float:
    """Return the seconds until something is so."""
    while not is_so():
        assert time.monotonic() - began < LIMIT_S, "it took too long"
        time.sleep(0.1)
    return time.monotonic() - began


def has_rows(url: str) -> bool:
    """Tell whether a view has rows."""
    answer = httpx.get(url, timeout=60)
    return answer.status_code == 200 and bool(answer.json()["rows"])


def _shown(url: str, path: str, words: str, began: float) -> bool:
    """Look at a page; tell whether what must be seen there is."""
    answer = httpx.get(url + path, timeout=60, follow_redirects=True)
    found = answer.status_code == 200 and words in answer.text
    how = "with" if found else "without"
    print(f"page {path}: {answer.status_code}, {how} {words!r}: {time.monotonic() - began:.1f} s")
    return found


def main() -> int:
    """Print the times; return 1 where it took longer than it may."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROFSVC_")}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "profsvc", "demo", "--serve", "--keep", folder]
        began = time.monotonic()
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr
            url = next(found[1] for line in process.stderr if (found := re.search(r"PROFSVC_URL=(\S+)", line)))
            print(f"the address: {time.monotonic() - began:.1f} s")
            for what, path in WANTED.items():
                print(f"{what}: {until(lambda path=path: has_rows(url + path), began):.1f} s")
            shown = [_shown(url, path, words, began) for path, words in PAGES.items()]
            took = time.monotonic() - began
            process.send_signal(signal.SIGINT)
            process.stderr.read()
    print(f"all of it: {took:.1f} s, at most {LIMIT_S:.0f} s")
    return 0 if took < LIMIT_S and all(shown) else 1


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    sys.exit(main())
