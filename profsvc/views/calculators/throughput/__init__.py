"""The throughput model."""
