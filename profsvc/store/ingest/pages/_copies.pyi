from typing import Any

INTERFACE: int

def rows(rows: int, columns: tuple[tuple[int, Any, Any, Any, Any], ...], target: Any, /) -> int: ...
