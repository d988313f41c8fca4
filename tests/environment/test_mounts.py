"""What a test mounts goes with the process of the test."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.environment.mounts import mounted

TMPFS = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs"]
START = f"""
import sys, time
from pathlib import Path
from tests.environment.mounts import mounted
with mounted(Path(sys.argv[1]), {TMPFS}):
    print("mounted", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root mounts a disk")
def test_a_file_system_goes_with_a_process_that_is_killed(tmp_path: Path) -> None:
    with mounted(tmp_path, TMPFS):
        assert tmp_path.is_mount()
    assert not tmp_path.is_mount()
    command = [sys.executable, "-c", START, tmp_path]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "mounted\n"
        assert tmp_path.is_mount()
        process.kill()
    end = time.monotonic() + 30
    while tmp_path.is_mount() and time.monotonic() < end:
        time.sleep(0.02)
    assert not tmp_path.is_mount()
