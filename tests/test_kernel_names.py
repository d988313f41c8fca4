"""Short names of kernels, as compilers and tools print the names."""

import pytest

from profsvc.kernel_names import NO_NAME, short_kernel_name, with_template_arguments

AT = "at::native::"
NAMES = [
    # GCC writes the types of a template behind the parameters.
    ("void k(int) [with T = float]", "k", "k"),
    ("void ns::k(T*, U) [with T = float; U = int]", "k", "k"),
    ("void ns::k<T>(T const*) [with T = std::vector<int, std::allocator<int> >]", "k", "k<T>"),
    ("void k(T) [with T = float [4]]", "k", "k"),
    ("void k(F) [with F = main()::<lambda(int)>]", "k", "k"),
    ("void k(F) [with F = g(T) [with T = int]::<lambda(int)>]", "k", "k"),
    ("k(float*) [clone .constprop.0] [with T = float]", "k", "k"),
    ("void k<T>(T*) [with T = float] [clone .kd]", "k", "k<T>"),
    ("scale(float*, int) (.kd)", "scale", "scale"),
    ("__amd_rocclr_fillBufferAligned.kd", "__amd_rocclr_fillBufferAligned", "__amd_rocclr_fillBufferAligned"),
    # Signs that are no brackets.
    ("bool ns::operator< <int>(ns::A<int> const&)", "operator<", "operator< <int>"),
    ("void ns::S::operator<<(int)", "operator<<", "operator<<"),
    ("void ns::S::operator[](int) const", "operator[]", "operator[]"),
    ("void ns::S::operator()(int) const", "operator()", "operator()"),
    ("void k<&ns::S::operator<<, 3>(int)", "k", "k<&ns::S::operator<<, 3>"),
    ("void operator_kernel<4>(int)", "operator_kernel", "operator_kernel<4>"),
    ("void k<(1 >> 2), (A < B)>(int)", "k", "k<(1 >> 2), (A < B)>"),
    ("void k<(bool)(3>2)>(int)", "k", "k<(bool)(3>2)>"),
    ("void k<decltype(a->b)>(int)", "k", "k<decltype(a->b)>"),
    ("void k<char, '>'>(int)", "k", "k<char, '>'>"),
    # Parameters of any depth.
    ("void k(void (*)(int (*)(float (*)(int))))", "k", "k"),
    ("void (anonymous namespace)::k<int>(int*)", "k", "k<int>"),
    ("void <unnamed>::k<int>(int*)", "k", "k<int>"),
    (f"void {AT}k<4, {AT}f(int)::{{lambda()#2}}::operator()() const::{{lambda(float)#1}}>(int, {AT}g<x>)", "k",
     f"k<4, {AT}f(int)::{{lambda()#2}}::operator()() const::{{lambda(float)#1}}>"),
    (f"void {AT}k<{AT}[lambda(float) (instance 1)], (int)2>(int, T1)", "k",
     f"k<{AT}[lambda(float) (instance 1)], (int)2>"),
    ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128>(T1::Params)", "Kernel",
     "Kernel<cutlass_80_tensorop_s1688gemm_128x128>"),
    # Names that are cut, and those without types.
    ("void gemm<float, int...", "gemm", "gemm<float, int..."),
    ("void gemm(float*, in", "gemm", "gemm"),
    ("triton_red_fused__softmax_1_kernel_0d1d2d3de",) * 3,
    ("[CUDA memcpy HtoD]",) * 3,
    ("", NO_NAME, NO_NAME),
    ("  ", NO_NAME, NO_NAME),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "short", "with_arguments"), NAMES)
def test_the_last_part_of_a_name(kernel, short, with_arguments):
    assert short_kernel_name(kernel) == short
    assert with_template_arguments(kernel) == with_arguments
