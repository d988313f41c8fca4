"""Performance models of a launch: results side by side, plots, past errors, predictions and what-if."""
