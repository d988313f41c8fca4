"""Pages of SQLite tables and rows for Postgres by compiled modules, which are optional."""
