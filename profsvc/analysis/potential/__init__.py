"""Potential of launches: useful time per unit, peak rates, the overall potential, and what to do first."""
