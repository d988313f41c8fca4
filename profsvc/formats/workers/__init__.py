"""Processes with limited memory and time that read untrusted files with code that cannot be interrupted."""
