"""Rows into base tables: names as numbers, inserts, Postgres COPY, SQLite pages and a writer thread."""
