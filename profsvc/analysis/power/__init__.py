"""Results of power logs: sensor, windows, components; below them temperature and sweeps."""
