"""Readers of the formats of profsvc itself: phase marks, characterizations, memory traces."""
