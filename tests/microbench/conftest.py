"""The stand-ins for CUDA."""

from tests.cuda import cuda, script

__all__ = ["cuda", "script"]
