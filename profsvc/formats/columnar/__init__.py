"""Whole blocks of plain lines at once, with Arrow and NumPy; irregular lines are left to the readers by lines."""
