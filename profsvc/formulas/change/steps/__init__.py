"""Steps in the level of a series: how surely there is one, where, and from what to what.

Modules::

    early_steps     a second step soon after a first one
    newest_step     the surest step of each series, with the weight on the newest values
    newest_values   where newest values begin that may have a level of their own
    surest_step     the newest values held against all before them, window by window
    two_level_test  probability of a step, from all values and without each of them
"""
