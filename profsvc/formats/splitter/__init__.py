"""Splits rows of delimited text into typed columns with a compiled module, where there is one."""
