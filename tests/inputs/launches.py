"""Runs of launches drawn at random, put into a store as rows: what is asked of many runs is asked of these."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from sqlalchemy import Engine

from profsvc import store
from profsvc.tables import Batch
from tests.inputs.long_exports import KERNELS


def launch_columns(draw: np.random.Generator, launches: int) -> dict[str, Any]:
    """Return the columns of launches one after another, each of one of `KERNELS`, which has times of its own."""
    kernels = draw.integers(0, len(KERNELS), launches)
    durations = np.round(draw.lognormal(8 + kernels / 30, 0.3))
    return {
        "launch_index": np.arange(launches),
        "kernel": np.array(KERNELS, object)[kernels],
        "device": "NVIDIA H200",
        "stream": 7,
        "start_ns": np.cumsum(durations).astype(np.int64),
        "duration_ns": durations,
        "grid_x": 1 + kernels,
        "block_x": 256,
        "line": np.arange(launches) + 4,
    }


def put_run(engine: Engine, run: int, batches: Iterable[Batch], **about: Any) -> None:
    """Write a run with a name and a commit of its own."""
    name = f"run-{run:05}"
    info = store.UploadInfo(f"{name}.csv", hashlib.sha256(name.encode()).hexdigest(), 0, "nvprof")
    store.write_upload(engine, info, store.RunInfo(name=name, commit_id=f"{run:07x}", **about), iter(batches))
