"""Runs a program under the profilers of this machine, logs the board meanwhile, and exports what they wrote.

``tools`` finds the profilers and the GPU, ``passes`` runs the program under each, ``energy_counter`` reads the energy
counter of NVML.
"""

from profsvc.recording.passes import Plan, Recording, commands, record
from profsvc.recording.tools import Tools, find_tools

__all__ = ["Plan", "Recording", "Tools", "commands", "find_tools", "record"]
