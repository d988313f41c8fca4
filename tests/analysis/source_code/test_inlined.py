"""Lines that call inlined functions, by their texts: of headers of the toolkit, and functions of one line."""

import pytest

from profsvc.analysis.source_code.inlined import calls_of_header, calls_of_short_functions, defined_function, with_calls
from tests.analysis.source_code.test_line_times import HEADER, line_times, row


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("template <class T> __device__ T* at(T* p) { return p + 1; }", "at"),
        ("const auto add = [&](int k) -> float { return own[k]; };", "add"),
        ("__global__ void k(int n) { body<true>(n); }", "k"),
        ("__device__ int over(int v, int d) {", None),
        ("int x = over(v, d);", None),
        ("else if (x) { y = f(x); }", None),
        ("while (f(x)) { ++x; }", None),
        ("return f(x), g(y); }", None),
        ("x = f(a) + T{a}; }", None),
        ("int f(int a); int g() { return f(1); }", None),
    ],
)
def test_a_definition_on_one_line(text: str, name: str | None) -> None:
    assert defined_function(text) == name


def test_a_function_of_one_line_shares_its_time_with_the_lines_that_call_it() -> None:
    texts = {
        ("a.cuh", 1): "__device__ int half(int v) { return v / 2; }  // half(v)",
        ("a.cu", 2): "auto both = [&](int k) { return half(x[k]) + half(y[k]); };",
        ("a.cu", 3): "s += both(1) + both(2);",
        ("a.cu", 4): "t += both(3) + half (s);",
    }
    found = with_calls({("a.cuh", 1): 0.9, ("a.cu", 2): 0.0, ("a.cu", 3): 0.1}, calls_of_short_functions(texts), {})
    assert sum(found.values()) == pytest.approx(1)
    assert found == pytest.approx(
        {("a.cuh", 1): 0.45, ("a.cu", 2): 0.15, ("a.cu", 3): 0.1 + 0.1, ("a.cu", 4): 0.15 + 0.05}
    )


def test_calls_share_by_how_often_their_line_is_executed() -> None:
    texts = {("a", 1): "int f(int x) { return x; }", ("a", 2): "y = f(x);", ("a", 3): "z = f(y);", ("a", 4): "f(f(z));"}
    found = with_calls({("a", 1): 0.8}, calls_of_short_functions(texts), {("a", 1): 99, ("a", 2): 10, ("a", 3): 30})
    assert found == pytest.approx({("a", 1): 0.4, ("a", 2): 0.04, ("a", 3): 0.12, ("a", 4): 0.24})


def test_functions_that_call_each_other_end() -> None:
    texts = {("a", 1): "int f(int x) { return g(x); }", ("a", 2): "int g(int x) { return f(x); }"}
    assert sum(with_calls({("a", 1): 1.0}, calls_of_short_functions(texts), {}).values()) == pytest.approx(1)


def test_a_line_that_nobody_calls_or_that_is_too_long_keeps_its_time() -> None:
    texts = {("a", 1): "int f(int x) { return x; }", ("a", 2): "y = f(x);" + " " * 500}
    assert with_calls({("a", 1): 1.0}, calls_of_short_functions(texts), {}) == {("a", 1): 1.0}


def test_instructions_of_a_header_count_for_the_nearest_line_that_calls_one_of_its_functions() -> None:
    code = [
        row(0, 4, "IMAD R4, R2, R3, RZ"),
        row(1, 75, "RED.E.ADD [R4.64], R5", file=HEADER, Wait=60),
        row(2, 6, "MOV R6, R7", Wait=40),
    ]
    texts = {
        ("a.cu", 2): "atomicAdd(&y[0], v);",
        ("a.cu", 4): "int k = v * 3;",
        ("a.cu", 5): "atomicAdd(&y[k], v);",
        (HEADER, 75): "return __iAtomicAdd(address, val);",
    }
    assert line_times(code, [], texts)["a.cu", 5] == pytest.approx(0.6)
    assert line_times(code, [])["a.cu", 4] == pytest.approx(0.6)
    assert calls_of_header("/usr/local/cuda/include/unknown.h", texts) == []
