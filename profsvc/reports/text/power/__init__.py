"""Power and temperature of a run, a board and its die as text."""
