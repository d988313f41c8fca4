"""Performance of an algorithm and of a device."""
