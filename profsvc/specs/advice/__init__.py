"""What makes kernels slow, and what to do: causes, anti-parallel patterns, categories."""
