"""Runs as text: the first screen, launches, wall time and memory traces."""
