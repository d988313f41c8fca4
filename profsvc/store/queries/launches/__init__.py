"""Launches of a run in an order, and what they can be filtered by."""
