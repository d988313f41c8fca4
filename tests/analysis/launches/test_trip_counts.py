"""Loops of unequal length: branches back are told from others, and threads that never entered do not count."""

from profsvc.analysis.launches.trip_counts import trip_count_balance
from profsvc.formulas.performance.latency import trip_balance


def instruction(address, sass, executed, threads):
    return {"address": hex(address), "sass": sass, "instructions": executed, "thread_instructions": threads}


def loop(executed, threads, entering=32):
    return [
        instruction(0x10, "MOV R1, R2", 1, entering),
        instruction(0x20, "IADD R1, R1, R3", executed, threads),
        instruction(0x30, "@!P0 BRA 0x20", executed, threads),
        instruction(0x40, "BRA 0x60", 1, 32),
        instruction(0x50, "BRA 0x50", 0, 0),
        instruction(0x60, "EXIT", 1, 32),
    ]


def test_the_branch_back_counts_the_iterations_of_the_warp():
    trips = [1, 1, 1, 5] * 8
    assert trip_count_balance(loop(max(trips), sum(trips))) == trip_balance(trips).value == 0.4
    assert trip_count_balance(loop(7, 7 * 32)) == 1


def test_threads_that_do_not_enter_a_loop_are_not_lost_in_it():
    assert trip_count_balance(loop(7, 7 * 8, entering=8)) == 1


def test_without_a_loop_nothing_is_said():
    assert trip_count_balance([]) is None
    assert trip_count_balance(loop(0, 0)) is None
    assert trip_count_balance([instruction(0x10, "BRA `(.L_x_1)", 3, 96)]) is None
