"""Thermocouples: voltage to temperature, calibration, rotation test, heat map.

Modules::

    active_cores  contrast of one active core, cores of one cluster, hot spots of sets of cores
    calibration   offsets between plates of uniform temperature
    emf           voltage to temperature, steady means
    heat_map      temperature over the die
    rotation      rotation and repeatability tests
"""
