"""The engine of every log with a time column: labels, units, clocks, channels, and the two kinds of its tables."""
