"""What threads have freed is of use to other threads."""

import subprocess
import sys

import pytest

COUNTED = """
import ctypes, os, sys, tempfile, threading
from profsvc.web.http.malloc import limit_arenas
if sys.argv[1] == "shared":
    limit_arenas()
together = threading.Barrier(12)
def work():
    together.wait()
    found = [bytes(4000) for _ in range(2000)]
    together.wait()
threads = [threading.Thread(target=work) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile("r") as file:
    out = ctypes.c_void_p(c.fopen(file.name.encode(), b"w"))
    c.malloc_info(0, out)
    c.fclose(out)
    print(file.read().count("<heap nr="))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about the C library of GNU")
def test_threads_of_the_service_share_what_is_free() -> None:
    def arenas(how: str) -> int:
        command = [sys.executable, "-c", COUNTED, how]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    if arenas("own") <= 2:
        pytest.skip("here the C library has no pool for each thread")
    assert arenas("shared") <= 2
