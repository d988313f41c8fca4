"""Commands about launches of a run: predictions, patterns, and speedups along versions."""
