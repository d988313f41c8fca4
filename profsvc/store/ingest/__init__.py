"""Uploads: hashing, staging, encoding, bulk writing, and files that contain the same launches."""
