"""Finds the compiler and the GPU, and compiles the microbenchmarks for it into a folder that keeps them."""

import hashlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from profsvc.errors import InputError, ServiceError

PROGRAMS = ("memory", "arithmetic", "control", "tensor")
HEADER = "bench.cuh"
USUAL_PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
MIN_CAPABILITY = 7.5
SECONDS_TO_COMPILE = 300
SECONDS_TO_ASK = 30
QUERY = ("name", "compute_cap", "driver_version", "utilization.gpu", "temperature.gpu", "power.limit")
MAX_WORDS = 500


class Tools(NamedTuple):
    """Programs of the CUDA toolkit and the driver.

    Without ``cuobjdump`` the machine code is not inspected, without ``ncu`` the peak of L2 is not known.
    """

    nvcc: str
    nvidia_smi: str
    cuobjdump: str | None
    ncu: str | None


class Device(NamedTuple):
    """The GPU to characterize, as nvidia-smi describes it."""

    number: int
    name: str
    compute_capability: str
    driver: str
    utilization: str
    temperature: str
    power_limit: str

    @property
    def architecture(self) -> str:
        """Its compute capability without the point.

        >>> Device(0, "NVIDIA H200", "9.0", "", "", "", "").architecture
        '90'
        """
        return self.compute_capability.replace(".", "")


def find_tools() -> Tools:
    """Return the tools on the PATH, under CUDA_HOME or at the usual places; raise `InputError` without them."""
    folders = [f"{os.environ[name]}/bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *folders, *USUAL_PLACES])
    nvcc, smi = shutil.which("nvcc", path=path), shutil.which("nvidia-smi", path=path)
    if nvcc is None:
        raise InputError(
            "no CUDA compiler: nvcc is neither on the PATH nor under CUDA_HOME or /usr/local/cuda; install the CUDA "
            "toolkit on the machine with the GPU, or set CUDA_HOME"
        )
    if smi is None:
        raise InputError(
            "no GPU: nvidia-smi, which comes with the driver, is not on the PATH; run this on a machine with an "
            "NVIDIA GPU and its driver"
        )
    return Tools(nvcc, smi, shutil.which("cuobjdump", path=path), shutil.which("ncu", path=path))


def find_device(tools: Tools, number: int = 0) -> Device:
    """Return the GPU with this number; raise `InputError` if there is none or it is too old."""
    command = [tools.nvidia_smi, f"--id={number}", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    done = run_tool(command, SECONDS_TO_ASK)
    cells = [cell.strip() for cell in done.stdout.strip().split("\n")[-1].split(",")]
    if done.returncode or len(cells) != len(QUERY):
        raise InputError(f"no GPU {number}: nvidia-smi says {last_words(done.stdout + done.stderr)!r}")
    device = Device(number, *cells)
    try:
        capability = float(device.compute_capability)
    except ValueError:
        raise InputError(
            f"GPU {number}: nvidia-smi gives the compute capability {device.compute_capability!r}"
        ) from None
    if capability < MIN_CAPABILITY:
        raise InputError(f"{device.name} has compute capability {capability}; {MIN_CAPABILITY} or later is needed")
    return device


def build(tools: Tools, architecture: str, folder: Path, programs: tuple[str, ...] = PROGRAMS) -> dict[str, Path]:
    """Compile programs for an architecture into ``folder``, unless they are there; return their paths by name.

    The folder of a build is named after its sources, its compiler and its target, so that none is ever mistaken.
    """
    sources = resources.files("profsvc.microbench")
    text = {name: sources.joinpath(name).read_bytes() for name in (HEADER, *(f"{name}.cu" for name in programs))}
    compiler = run_tool([tools.nvcc, "--version"], SECONDS_TO_ASK).stdout
    named = hashlib.sha256(b"\0".join([compiler.encode(), architecture.encode(), *text.values()])).hexdigest()[:16]
    place = folder / f"sm_{architecture}-{named}"
    place.mkdir(parents=True, exist_ok=True)
    paths = {name: place / name for name in programs}
    missing = [name for name in programs if not paths[name].is_file()]
    if not missing:
        return paths
    for name, content in text.items():
        place.joinpath(name).write_bytes(content)
    with ThreadPoolExecutor(len(missing)) as pool:
        list(pool.map(lambda name: _compile(tools.nvcc, architecture, place, name), missing))
    return paths


def target(architecture: str, program: str) -> str:
    """Return the option of nvcc; the warp group instructions of 9.0 need its own target.

    >>> target("86", "tensor"), target("90", "tensor")
    ('-arch=sm_86', '-gencode=arch=compute_90a,code=sm_90a')
    """
    special = architecture == "90" and program == "tensor"
    return "-gencode=arch=compute_90a,code=sm_90a" if special else f"-arch=sm_{architecture}"


def _compile(nvcc: str, architecture: str, place: Path, program: str) -> None:
    unfinished = place / f"{program}.{os.getpid()}"
    options = ["-O3", "-std=c++17", target(architecture, program), f"-DARCH={architecture}"]
    done = run_tool([nvcc, *options, "-o", str(unfinished), str(place / f"{program}.cu")], SECONDS_TO_COMPILE)
    if done.returncode:
        raise InputError(f"nvcc cannot compile {program}.cu for sm_{architecture}: {last_words(done.stderr)}")
    unfinished.replace(place / program)


def device_environment(number: int) -> dict[str, str]:
    """Return the environment in which a program sees only this GPU, as nvidia-smi counts."""
    return {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(number)}


def run_tool(
    command: list[str], seconds: float, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a tool to its end; raise `ServiceError` if it takes longer, `InputError` if it cannot be run."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
            stdin=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ServiceError(f"{Path(command[0]).name} did not end within {seconds:g} s") from None
    except OSError as error:
        raise InputError(f"cannot run {command[0]}: {error.strerror}") from None


def last_words(text: str) -> str:
    """Return the end of what a tool printed as one line."""
    return " ".join(text.split())[-MAX_WORDS:]
