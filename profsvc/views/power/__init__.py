"""The power of runs: windows, components, plots, two runs side by side, and heat maps."""
