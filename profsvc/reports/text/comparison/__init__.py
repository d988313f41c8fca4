"""Comparisons as text: two runs, their summary for a CI job, and two launches line by line."""
