"""The launches of a run, and what is known of one: counters, causes, source lines."""
