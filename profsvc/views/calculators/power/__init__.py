"""Power and energy."""
