"""Sweeps of one load: the number of SMs, the clock, or the share of the work that the CPU has."""
