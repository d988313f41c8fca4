"""The stand-ins for CUDA."""

from tests.environment.cuda import cuda, power_cuda, script

__all__ = ["cuda", "power_cuda", "script"]
