"""Runs and launches compared."""
