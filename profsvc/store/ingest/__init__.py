"""Uploads: hashing, runs, staging, bulk writing, and files that contain the same launches."""
