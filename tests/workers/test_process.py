"""Worker processes end with their parent."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from profsvc.workers.process import Limits, first_request, start_worker, to_frame

# One call that takes minutes, in which the interpreter handles no signal and no other thread runs.
JOB = "def run(asked, received, send):\n    send(b'begun')\n    sum(range(10**12))\n"
PARENT = """
import sys, time
from pathlib import Path
from profsvc.workers.process import Limits, first_request, start_worker, to_frame
with start_worker(Path(sys.argv[1])) as worker:
    worker.stdin.write(to_frame(first_request(Limits(1 << 30, 600))))
    worker.stdin.flush()
    worker.stdout.read(8)
    print(worker.pid, flush=True)
    time.sleep(600)
"""


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def has_ended(process: int) -> bool:
    limit = time.monotonic() + 20
    while is_alive(process) and time.monotonic() < limit:
        time.sleep(0.02)
    return not is_alive(process)


def test_a_worker_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB, encoding="utf-8")
    command = [sys.executable, "-c", PARENT, str(job)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        worker = int(parent.stdout.readline())
        assert is_alive(worker)
        parent.send_signal(signal.SIGKILL)
    assert has_ended(worker)


def test_a_worker_ends_with_its_block_and_keeps_no_file_open(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB, encoding="utf-8")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with start_worker(job) as worker:
        assert worker.stdin
        worker.stdin.write(to_frame(first_request(Limits(1 << 30, 600))))
        worker.stdin.flush()
        assert is_alive(worker.pid)
    assert has_ended(worker.pid)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
