"""Readers of power meters and power analyzers."""
