"""Models as text for a terminal: results, predictions, their accuracy, and anti-parallel patterns."""
