"""Questions about whole runs."""
