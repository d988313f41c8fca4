"""How a file is taken in blocks: what is plain at once, what is odd line by line, and no more of either than needed."""

import threading

import pytest

from profsvc.formats.columnar.line_blocks import MAX_DOUBLINGS, parse_ahead, read_adaptive_blocks


def walk(lines, is_plain, block=4000, small=100):
    """Return what `read_adaptive_blocks` yields, and the number of calls of ``take``."""
    text = "".join(lines).encode()
    blocks = [text[place : place + block] for place in range(0, len(text), block)]
    asked = []

    def take(piece):
        rows = piece.decode().splitlines()
        asked.append(len(rows))
        return len(rows) if all(map(is_plain, rows)) else 0

    return list(read_adaptive_blocks(iter(blocks), take, small)), len(asked)


@pytest.mark.parametrize("every", [1, 2, 7, 100, 1000, 10_000])
def test_every_line_is_in_one_place(every):
    lines = [f"{n:09}\n" for n in range(3000)]
    found, _ = walk(lines, lambda line: (int(line) + 1) % every)
    place = 0
    for one in found:
        assert one > 0 if isinstance(one, int) else one == lines[place : place + len(one)]
        place += one if isinstance(one, int) else len(one)
    assert place == len(lines)


def test_an_odd_line_costs_its_surroundings_only():
    lines = [f"{n:09}\n" for n in range(3000)]
    found, asked = walk(lines, lambda line: int(line) != 1234)
    assert sum(len(one) for one in found if not isinstance(one, int)) <= 11
    assert asked < 20


def test_lines_that_are_all_odd_are_seldom_tried():
    lines = [f"{n:09}\n" for n in range(20_000)]
    found, asked = walk(lines, lambda line: False, block=20_000)
    assert not any(isinstance(one, int) for one in found)
    assert asked < 20_000 / 11 / 2**MAX_DOUBLINGS * 2 + 10 * 2


def test_the_next_block_is_read_while_one_is_taken():
    read = [threading.Event() for _ in range(5)]

    def blocks():
        for number, event in enumerate(read):
            event.set()
            yield bytes([number])

    taken = []
    for block, plan, part in parse_ahead(blocks(), lambda: "plan", lambda block, plan: block + plan.encode()):
        assert read[min(block[0] + 2, 4)].wait(10)
        taken.append((block, plan, part))
    assert taken == [(bytes([number]), "plan", bytes([number]) + b"plan") for number in range(5)]


def test_an_error_of_the_source_follows_the_blocks_before_it():
    def blocks():
        yield b"first"
        raise ValueError("the file ends here")

    found = parse_ahead(blocks(), lambda: None, lambda block, plan: None)
    assert next(found).block == b"first"
    with pytest.raises(ValueError, match="ends here"):
        next(found)


def test_whoever_stops_early_leaves_no_thread():
    before = threading.active_count()
    found = parse_ahead(iter([b"a", b"b", b"c"]), lambda: "plan", lambda block, plan: block)
    assert next(found).block == b"a"
    found.close()
    assert threading.active_count() == before
