"""Temperature of a board and of its die as text."""
