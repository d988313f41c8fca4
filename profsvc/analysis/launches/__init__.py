"""Criteria of launches, with the device characterization, the memory traffic and the timeline they need."""
