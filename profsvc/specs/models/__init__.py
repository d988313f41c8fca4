"""The models that answer about a run, and what they take."""
