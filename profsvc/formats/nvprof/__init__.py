"""Readers of nvprof: CSV and text."""
