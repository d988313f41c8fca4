"""Rows on their way into tables: names as numbers, bulk inserts, Postgres COPY, SQLite pages and a writer thread."""
