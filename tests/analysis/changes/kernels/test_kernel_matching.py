"""Which kernel of one run is which of another."""

import pytest

from profsvc.analysis.changes.kernels.kernel_matching import Match, match_kernels
from profsvc.errors import NotFoundError


def test_the_full_name_comes_before_the_short_one():
    before, after = ["void gemm<16>(float)", "void gemm<32>(float)"], ["void gemm<32>(float)", "void gemm<8>(float)"]
    assert match_kernels(before, after) == [
        Match("void gemm<16>(float)", "void gemm<8>(float)", "short name"),
        Match("void gemm<32>(float)", "void gemm<32>(float)", "name"),
    ]


def test_a_short_name_that_two_kernels_have_pairs_neither():
    assert match_kernels(["k<1>()", "k<2>()"], ["k<3>()", "k<4>()"]) == []
    assert match_kernels(["k<1>()"], ["k<3>()", "k<4>()"]) == []


def test_what_the_user_says_comes_first():
    found = match_kernels(["a()", "b()"], ["a()", "b()"], {"a": "b()"})
    assert found == [Match("a()", "b()", "map")]


def test_a_map_of_no_kernel_names_the_nearest():
    with pytest.raises(NotFoundError, match="did you mean 'saxpy'"):
        match_kernels(["saxpy(int)"], ["saxpy(int)"], {"saxpi": "saxpy"})
    with pytest.raises(NotFoundError, match=r"the name of 2 kernels, k<1>\(\), k<2>\(\)"):
        match_kernels(["k<1>()", "k<2>()"], ["a()"], {"k": "a"})


def test_the_name_on_the_screen_is_taken_for_its_kernel():
    before, after = ["void gemm<16>(float *)", "void gemm<(int)32>(float *)"], ["ns::fast<8>(float *)", "slow<8>()"]
    found = match_kernels(before, after, {"gemm<32>": "fast<8>"})
    assert [(one.before, one.after) for one in found] == [(before[1], after[0])]
