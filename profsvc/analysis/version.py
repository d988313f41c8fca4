"""The version of the analysis of launches, for what asks for it alone."""

VERSION = "48"
"""Raised when any number changes for the same input."""
