"""Results that analyses write and read."""
