"""Noise of temperature readings: rounding, hidden errors and autocorrelation.

Modules::

    autocorrelated_fit      least squares under autocorrelated noise
    constant_load_segments  segments of constant load, their blocks and hidden errors
    quantization            likelihood of rounded readings
"""
