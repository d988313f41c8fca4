"""The offset between the clocks of a power log and a temperature log.

Modules::

    joint_offset_fit  likeliest offset and constants for rounded readings
    offset_search     least squares search for the offset
    two_logs          the offset with its interval, or why there is none
"""
