"""Connections to a store: engine, transactions, error translation, locks, file permissions."""
