"""Microbenchmarks of a GPU: their CUDA sources, compiling and running them, and the characterization they give."""

from profsvc.microbench.machine_code import unexpected_code
from profsvc.microbench.measuring import characterize
from profsvc.microbench.power_log import log_power
from profsvc.microbench.raw import Raw, read_raw
from profsvc.microbench.rows import characterization_rows
from profsvc.microbench.toolkit import Device, Tools, build, find_device, find_tools

__all__ = [
    "Device",
    "Raw",
    "Tools",
    "build",
    "characterization_rows",
    "characterize",
    "find_device",
    "find_tools",
    "log_power",
    "read_raw",
    "unexpected_code",
]
