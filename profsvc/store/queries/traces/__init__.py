"""Traces of a run: their files and devices, and their events in the order of their starts."""
