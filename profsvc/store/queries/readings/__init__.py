"""Questions about readings of sensors, which know the blocks that readings are stored in."""
