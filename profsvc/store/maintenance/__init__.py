"""Migrations, backfill, deletion, cleanup, backup and health checks."""
