"""Change between runs: steps in a series, the nightly test, states of findings.

Modules::

    bisection        search for the first commit of a change by measurements with noise
    early_steps      a second step soon after a first one
    findings         states of a finding, and the evidence that changes them
    histories        all steps of long histories, looked at once
    levels           levels that series leave and come back to
    newest_values    where newest values begin that may have a level of their own
    night_states     nights on which a board was in another state
    nightly_test     newest value, noise floor, false-discovery rate, reporting threshold
    older_values     values of before a series scattered, or became quieter
    other_state      steps while the board is in another state, in which values scatter more
    shared_noise     noise of a night that all siblings share
    siblings         what the siblings of a series say of it
    steps            steps in the level of a series
    stretches        how often siblings leave their level and come back
    surest_step      the newest values held against all before them, window by window
    trends           whether a series stays, follows a trend or steps
    two_level_test   probability of a step, from all values and without each of them
    unknown_dependence  how laws of dependence count where no siblings say which
    wandering        levels that move from night to night
    weekly_cycles    what the day of the week adds to values
"""
