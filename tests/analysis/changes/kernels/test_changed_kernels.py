"""Whether a kernel is another one: by what it executes, else by what the runs say of their program."""

import pytest

from profsvc.analysis.changes.kernels.changed_kernels import Build, Kernel, has_changed


def traits(**ends):
    return {(name, "as the tool says"): pair for name, pair in ends.items()}


SAME = {"grid_x": (8.0, 8.0), "registers_per_thread": (32.0, 32.0), "inst_executed_warp": (640.0, 1280.0)}
KERNEL = Kernel("k", 2, traits(**SAME))
NOTHING = Kernel("k", 0, {})
COMMITS = Build(commit="a"), Build(commit="b")


def other(launches=2, name="k", **changes):
    return Kernel(name, launches, traits(**SAME | changes))


@pytest.mark.parametrize(
    ("new", "builds", "verdict", "because"),
    [
        (other(), (Build(), Build()), False, "instructions, traffic and launch configuration"),
        (other(), COMMITS, False, "instructions, traffic and launch configuration"),  # an unrelated commit
        (other(inst_executed_warp=(600.0, 1280.0)), (Build(), Build()), True,
         "inst_executed_warp 640 to 1280 before and 600 to 1280 after"),
        (other(inst_executed_warp=(600.0, 1280.0)), (COMMITS[0],) * 2, True, "inst_executed_warp"),  # not committed
        (other(inst_executed_warp=(600.0, 1280.0)), (Build("x", "a"), Build("x", "b")), False, "of the binary 'x'"),
        (other(grid_x=(4.0, 4.0)), (Build("x"), Build("x")), True, "grid_x 8 before and 4 after"),
        (other(grid_x=(4.0, 4.0), inst_executed_warp=(1.0, 2.0), registers_per_thread=(9.0, 9.0)), (Build(), Build()),
         True, "grid_x 8 before and 4 after, registers_per_thread 32 before and 9 after, and 1 more counters"),
        # Of other numbers of launches, only what all of them have in common can be held against each other.
        (other(3, inst_executed_warp=(600.0, 1280.0)), (Build(), Build()), None, "neither run names its binary"),
        (other(3, registers_per_thread=(40.0, 40.0)), (Build(), Build()), True, "registers_per_thread"),
        (NOTHING, (Build(), Build()), None, "profsvc upload --tag binary=ID"),
        (NOTHING, (Build("x"), Build()), None, "the run after does not name its binary"),
        (NOTHING, (Build(), Build(commit="a")), None, "the run before does not name its binary"),
        (NOTHING, (Build("x"), Build(commit="a")), None, "one run names a binary and the other a commit"),
        (NOTHING, (Build("x"), Build("y")), True, "binary 'x', then 'y'"),
        (NOTHING, COMMITS, True, "commit 'a', then 'b'"),
        (NOTHING, (COMMITS[0],) * 2, False, "both runs are of the commit 'a'"),
        (NOTHING, (Build("x", "a"), Build("x", "b")), False, "both runs are of the binary 'x'"),
    ],
)  # fmt: skip
def test_what_a_kernel_executes_tells_and_else_the_program(new, builds, verdict, because):
    found = has_changed(KERNEL, new, builds)
    assert found.changed is verdict
    assert because in found.because


def test_who_says_what_became_of_a_kernel_is_believed():
    assert has_changed(NOTHING, NOTHING._replace(name="other"), (Build("x"), Build("x")), mapped=True).changed
    assert has_changed(NOTHING, NOTHING, (Build("x"), Build("x")), mapped=True).changed is False


def test_what_was_computed_otherwise_or_rounded_tells_nothing():
    counted = {("inst_executed_warp", "another metric"): (600.0, 600.0)}
    assert has_changed(KERNEL, Kernel("k", 2, counted), (Build(), Build())).changed is None
    for bytes_after, verdict in ((4220.0, False), (4224.0, False), (4352.0, True)):
        both = [other(shared_mem_static_bytes=(size, size)) for size in (4224.0, bytes_after)]
        assert has_changed(*both, (Build(), Build())).changed is verdict
