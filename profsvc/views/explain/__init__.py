"""From a number to its formula, source, counters, upload and line."""
