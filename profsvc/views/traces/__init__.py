"""What the traces of a run answer: its timeline, its wall time, and a trace for Perfetto."""
