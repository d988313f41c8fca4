"""Rows of an upload from its tidy tables: launches and their totals, metrics, samples, source pages, events."""
