"""Levels that series leave and come back to, or that move.

Modules::

    carried_levels   levels visited before a change of the series, and since
    distant_levels   levels that dependent noise does not reach
    level_habits     excursions to other levels and back
    level_visits     probability that chance alone gives a level
    series_length    how many values a level, and a series with a step, needs
    stretches        how often siblings leave their level and come back
    wandering        levels that move from night to night
"""
