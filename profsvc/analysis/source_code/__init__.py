"""Machine code of a launch: its registers, and which lines cost its time."""
