"""Finds the profilers and the GPU of this machine."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from profsvc.errors import InputError
from profsvc.microbench.toolkit import SECONDS_TO_ASK, USUAL_PLACES, last_words, run_tool

# Where NVIDIA's installers put the profilers; of several versions the newest name is taken. The copy of nsys that
# Nsight Compute brings is the last choice.
PROFILER_PLACES = (
    *("opt/nvidia/nsight-compute/*", "opt/nvidia/nsight-systems/*/bin", "usr/local/cuda*/bin"),
    "opt/nvidia/nsight-compute/*/host/target-linux-*",
)
ROOT = Path("/")
DEVICES_VARIABLE = "CUDA_VISIBLE_DEVICES"
PRODUCTS = {"ncu": ("a profile", "Nsight Compute"), "nsys": ("a trace", "Nsight Systems")}
"""Program -> what is missing without it, and the product that it belongs to."""


class Tools(NamedTuple):
    """The programs of this machine, None for a profiler that is not installed, and the GPUs to log."""

    nvidia_smi: str
    ncu: str | None
    nsys: str | None
    gpus: str
    """Numbers or UUIDs, comma-separated."""


def find_tools(wanted: Sequence[str]) -> Tools:
    """Return the tools; ``wanted`` are the profilers to use.

    Raise `InputError` without a GPU, or if every wanted profiler is missing.
    """
    folders = [f"{os.environ[name]}/bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places = [str(one) for pattern in PROFILER_PLACES for one in sorted(ROOT.glob(pattern), reverse=True)]
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *folders, *USUAL_PLACES, *places])
    smi = shutil.which("nvidia-smi", path=path)
    if smi is None:
        raise InputError(
            "no GPU: nvidia-smi, which comes with the driver, is not on the PATH; run this on a machine with an "
            "NVIDIA GPU and its driver"
        )
    gpus = os.environ.get(DEVICES_VARIABLE, "") or "0"
    done = run_tool([smi, f"--id={gpus}", "--query-gpu=index,name", "--format=csv,noheader"], SECONDS_TO_ASK)
    if done.returncode or not done.stdout.strip():
        raise InputError(f"no GPU {gpus}: nvidia-smi says {last_words(done.stdout + done.stderr)!r}")
    found = {name: shutil.which(name, path=path) if name in wanted else None for name in PRODUCTS}
    if wanted and not any(found.values()):
        missing = " and ".join(f"{name} ({PRODUCTS[name][1]})" for name in wanted)
        raise InputError(
            f"no profiler: {missing} {'is' if len(wanted) == 1 else 'are'} neither on the PATH nor below CUDA_HOME, "
            f"/usr/local/cuda or /opt/nvidia; install one, or record power alone with --no-profile --no-trace"
        )
    return Tools(smi, found["ncu"], found["nsys"], gpus)


def missing_notes(tools: Tools, wanted: Sequence[str]) -> list[str]:
    """Return a sentence for each wanted profiler that is not installed.

    >>> missing_notes(Tools("nvidia-smi", "ncu", None, "0"), ["ncu", "nsys"])
    ['without a trace: nsys (Nsight Systems) is not installed; add its folder to the PATH']
    """
    found = {"ncu": tools.ncu, "nsys": tools.nsys}
    return [
        f"without {PRODUCTS[name][0]}: {name} ({PRODUCTS[name][1]}) is not installed; add its folder to the PATH"
        for name in wanted
        if found[name] is None
    ]
