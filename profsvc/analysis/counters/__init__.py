"""Counters of launches: derived from a tool's metrics, merged over files, and which of them are missing."""
