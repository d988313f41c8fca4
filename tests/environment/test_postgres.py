"""A server for tests ends with the process that started it."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.conftest import ROOT

START = """
import sys, time
from tests.environment import postgres
with postgres.own_server() as server, server.session() as session:
    print(session.execute("SHOW data_directory").fetchone()[0], flush=True)
    time.sleep(600)
"""


def test_a_server_ends_with_a_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", START], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        server = int((folder / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0])
        os.kill(server, 0)
        process.kill()
    end = time.monotonic() + 30
    while (folder.exists() or Path(f"/proc/{server}").exists()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.exists()
    assert not Path(f"/proc/{server}").exists()
