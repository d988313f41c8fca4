"""Temperature under power: the RC model, its fits, the coefficient, the correction, the offset of two logs.

Modules::

    clock_offset    clock offset of a power and a temperature log
    coefficient     watts per degree, and power at a reference temperature
    load_plan       temperature, leakage and time to a limit under planned loads
    noise           rounding, hidden errors and autocorrelation of readings
    rc_model        temperature under power: the RC model
    step_response   unit responses of parts to the power
    time_constants  fits of the RC model, and how well they predict
"""
