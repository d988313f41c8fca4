"""The model of memory and computation warps."""
