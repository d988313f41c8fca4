"""What threads have freed is of use to other threads, and the memory of a block to the next block."""

import subprocess
import sys

import pytest

COUNTED = """
import ctypes, os, sys, tempfile, threading
from profsvc.pipeline.malloc import limit_arenas
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
# Four arrays at a time, as the columns of a block, which are freed before the next ones are made.
CLEARED = """
import resource, sys
from profsvc.pipeline.malloc import keep_blocks
if sys.argv[1] == "kept":
    keep_blocks()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
first = faults()
for _ in range(100):
    block = [bytearray(b"1") * (1 << 21) for _ in range(4)]
    del block
print(faults() - first)
"""

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about the C library of GNU")


def _counted(program: str, how: str) -> int:
    command = [sys.executable, "-c", program, how]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@LINUX
def test_threads_of_the_service_share_what_is_free() -> None:
    if _counted(COUNTED, "own") <= 2:
        pytest.skip("here the C library has no pool for each thread")
    assert _counted(COUNTED, "shared") <= 2


@LINUX
def test_the_memory_of_a_block_is_that_of_the_next() -> None:
    own, kept = _counted(CLEARED, "own"), _counted(CLEARED, "kept")
    if own < 10_000:
        pytest.skip("here the C library keeps freed memory by itself")
    assert kept < own / 10
