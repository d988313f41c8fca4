"""Thermocouples: voltage to temperature, calibration, rotation test, heat map.

Modules::

    calibration  offsets between plates of uniform temperature
    emf          voltage to temperature, steady means
    heat_map     temperature over the die
    rotation     rotation and repeatability tests
"""
