"""Delimited tables of meters: lines, blocks of rows, the first pass over a file, clocks, and rows in turn."""
