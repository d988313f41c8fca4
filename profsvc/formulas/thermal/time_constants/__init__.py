"""Time constants of a board from its logs, and how well they predict.

Modules::

    left_out_windows   how well a model predicts loads that it was not fitted to
    rc_fit_under_load  time constants from a log of any load
    rc_fits            time constants under one load, maximum rise, rest
    relaxation         time constants of a relaxing temperature
"""
