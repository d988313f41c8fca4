"""The optimization criteria."""
