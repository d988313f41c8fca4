"""The pages of runs: their list, one run, its power, and runs compared."""
