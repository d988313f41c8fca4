"""Temperature under power: the RC model, its fits, the coefficient, the correction, the offset of two logs.

Modules::

    autocorrelated_fit       least squares under autocorrelated noise
    clock_offset             clock offset of a power and a temperature log
    coefficient_fit          watts per degree, from logs
    constant_load_segments   segments of constant load, their blocks and hidden errors
    joint_offset_fit         likeliest offset and constants for rounded readings
    left_out_windows         how well a model predicts loads that it was not fitted to
    load_plan                temperature, leakage and time to a limit under planned loads
    offset_search            least squares search for the offset
    quantization             likelihood of rounded readings
    rc_fit_under_load        time constants from a log of any load
    rc_fits                  time constants under one load, maximum rise, rest
    rc_model                 temperature under power: the RC model
    relaxation               time constants of a relaxing temperature
    repeated_loads           coefficient from repeats of one load
    step_response            unit responses of parts to the power
    temperature_coefficient  watts per degree with their interval, and when they are refused
    temperature_correction   power and energy at a reference temperature
"""
