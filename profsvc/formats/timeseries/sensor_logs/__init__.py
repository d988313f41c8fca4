"""Logs of sensors with rows under a header, as boards print them: rows to samples, column by column."""
