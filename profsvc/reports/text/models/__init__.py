"""Models of a launch as text for a terminal: predictions and anti-parallel patterns."""
