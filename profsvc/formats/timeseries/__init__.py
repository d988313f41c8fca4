"""The engine of every log with a time column: labels, units, clocks, channels, delimited tables."""
