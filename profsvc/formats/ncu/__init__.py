"""Readers of Nsight Compute: details, raw, session, summary, source and text pages."""
