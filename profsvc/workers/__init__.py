"""Processes with limited memory and time, for libraries that cannot be interrupted; each runs one job."""
