"""Change between runs: steps in a series, the nightly test, states of findings.

Modules::

    bisection        search for the first commit of a change by measurements with noise
    findings         states of a finding, and the evidence that changes them
    histories        all steps of long histories, looked at once
    levels           levels that series leave and come back to, or that move
    night_states     nights on which a board was in another state
    nightly_test     newest value, noise floor, false-discovery rate, reporting threshold
    noise            how values scatter about their level, as siblings say or as they look
    other_state      steps while the board is in another state, in which values scatter more
    steps            steps in the level of a series
    trends           whether a series stays, follows a trend or steps
    weekly_cycles    what the day of the week adds to values
"""
