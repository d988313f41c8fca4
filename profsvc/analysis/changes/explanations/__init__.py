"""What explains values and steps without a change: drifts, excursions, dependence, the day of the week."""
