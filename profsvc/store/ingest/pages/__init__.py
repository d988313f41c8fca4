"""Pages of SQLite tables by a compiled module, which is optional."""
