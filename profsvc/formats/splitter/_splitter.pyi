Block = bytes | memoryview

INTERFACE: int

def split(
    block: Block,
    separator: str,
    decimal: str,
    blanks: bool,
    quoted: bool,
    least: int,
    rows: int,
    columns: tuple[object, ...],
    /,
) -> tuple[int, tuple[list[str], ...], int]: ...
def count_lines(block: Block, /) -> int: ...
