"""Rendering of results as text, HTML, plots and files, without queries and computations."""
