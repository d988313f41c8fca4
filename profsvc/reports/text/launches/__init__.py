"""Launches as text: their details, and their source."""
