"""Results of power logs: windows, sensor, correction, thermal models, SM sweeps, components."""
