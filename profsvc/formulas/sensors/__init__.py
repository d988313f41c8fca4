"""Sensor logs: quality, plateaus, averaging, resampling, energy of windows.

Modules::

    averaging       averaging window of a power sensor
    energy_windows  energy and mean power of windows, energy counter
    idle_power      idle power of a cold board
    log_quality     invalid readings, gaps, update period, stuck values
    logs            valid readings, gap limit, integrals, long-run variance
    plateaus        plateaus and their slope
    power_steps     times of power steps
    resampling      one log at the stamps of another
"""
