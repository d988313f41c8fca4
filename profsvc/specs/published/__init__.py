"""The publications that formulas cite, and their figures held against the formulas."""
