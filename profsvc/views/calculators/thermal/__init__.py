"""Temperature and leakage of a board."""
