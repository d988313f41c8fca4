"""Queries, which return frames or pages."""
