"""Temperature and power: the coefficient of a board, power at one temperature, and temperatures under planned loads."""
