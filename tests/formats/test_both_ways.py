"""Every fixture of a reader of blocks, read at once and row by row."""

import pytest

from tests.formats.both_ways import READERS, detected, unpacked

BLOCKS = {"kineto": (300, 1 << 20)}
FILES = [
    pytest.param(name, path, block, id=f"{name}/{path.name}/{block or 'small'}")
    for name, reader in READERS.items()
    for path in reader.files
    for block in BLOCKS.get(name, (None,))
]


@pytest.mark.parametrize(("name", "path", "block"), FILES)
def test_a_fixture_gives_the_same_both_ways(name, path, block):
    sizes = {} if block is None else {"block": block}
    READERS[name].agree(unpacked(path), read=detected if name == "meters" else None, **sizes)
