"""Commands that look after the store: ``db``, ``delete``, ``undelete``, ``reparse`` and ``doctor``."""
