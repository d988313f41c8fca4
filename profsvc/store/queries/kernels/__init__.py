"""Questions about a kernel over many launches or runs: history, means, power."""
