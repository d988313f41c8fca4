"""Questions about sensor readings, which know the blocks that readings are stored in."""
