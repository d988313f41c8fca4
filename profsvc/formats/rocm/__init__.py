"""Readers of AMD's profilers: CSV of rocprof, rocpd databases, results of the first rocprof."""
