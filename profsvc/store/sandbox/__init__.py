"""SQL of users: rules, the SQLite worker, the Postgres role and limits."""
