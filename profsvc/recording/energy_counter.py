"""Logs the energy counter of NVML through the library of the driver; nothing needs to be installed for it."""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
HEADER = "unix_s,gpu,energy_mj"
PERIOD_S = 0.05


def load_library() -> Any | None:
    """Return the library of the driver; None where there is none, or it does not start."""
    try:
        library = ctypes.CDLL(LIBRARY)
        return library if library.nvmlInit_v2() == 0 else None
    except (OSError, AttributeError):
        return None


def energy_reader(library: Any, number: int) -> Callable[[], int | None]:
    """Return a function that reads the counter of a GPU in mJ; None where the board has no counter."""
    device = ctypes.c_void_p()
    known = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(number), ctypes.byref(device)) == 0

    def read() -> int | None:
        value = ctypes.c_ulonglong()
        if not known or library.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(value)):
            return None
        return value.value

    return read


@contextmanager
def logging_energy(file: Path, gpus: str, library: Any | None = None) -> Iterator[None]:
    """Write the counters of ``gpus`` to a file until the block ends; nothing is written where they cannot be read."""
    numbers = [int(one) for one in gpus.split(",") if one.strip().isdecimal()]
    library = library or (load_library() if numbers else None)
    readers = {number: energy_reader(library, number) for number in numbers} if library else {}
    readers = {number: read for number, read in readers.items() if read() is not None}
    if not readers:
        yield
        return
    over = threading.Event()

    def log() -> None:
        with file.open("w", encoding="ascii") as stream:
            stream.write(f"{HEADER}\n")
            while True:
                for number, read in readers.items():
                    if (energy := read()) is not None:
                        stream.write(f"{time.time():.4f},{number},{energy}\n")
                if over.wait(PERIOD_S):
                    return

    thread = threading.Thread(target=log, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
