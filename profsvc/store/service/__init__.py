"""Tokens and schedules."""
