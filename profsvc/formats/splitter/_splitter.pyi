Block = bytes | memoryview

INTERFACE: int

def split(
    block: Block, separator: str, decimal: str, blanks: bool, rows: int, columns: tuple[object, ...], /
) -> tuple[int, tuple[list[str], ...], int]: ...
def count_lines(block: Block, /) -> int: ...
