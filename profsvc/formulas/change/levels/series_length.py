"""How many values a series needs before its steps are looked for; without numpy, for who only says so."""

MIN_SEGMENT = 3  # values that make a level, unless said otherwise; one or two may be a spike
MIN_HISTORY = 5  # values before a step
