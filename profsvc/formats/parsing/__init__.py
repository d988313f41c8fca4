"""From bytes to lines, records and cells: what every reader of a text, JSON or SQLite export shares."""
