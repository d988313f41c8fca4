from typing import Any

INTERFACE: int

def leaves(
    first_row: int, rows: int, columns: tuple[tuple[bool, Any, Any], ...], pages: Any, last_rows: Any, /
) -> int: ...
