"""Numerical helpers of all formulas: arrays and masks, flags, distributions, intervals, regression, series.

Modules::

    arrays               arguments to arrays, masks, reductions over groups
    distributions        normal, Student's t, F and chi-squared
    flags                flags of all formulas, and the argument ``form``
    intervals            intervals of integers: which is on top, length of unions
    prediction_accuracy  predicted against achieved speedups
    regression           least squares, ordinary and nonnegative
    series               many series in one flat array
"""
