"""Plots, drawn with Matplotlib from plain data."""
