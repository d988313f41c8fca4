"""The temperature coefficient of the power of a board, and power at a reference temperature.

Modules::

    coefficient_fit          watts per degree, from logs
    repeated_loads           coefficient from repeats of one load
    temperature_coefficient  watts per degree with their interval, and when they are refused
    temperature_correction   power and energy at a reference temperature
"""
