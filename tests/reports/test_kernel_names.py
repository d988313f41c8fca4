"""Kernels whose short names are alike are distinguished by what is shown of them."""

import pytest

from profsvc.reports.kernel_names import MAX_LABEL_CHARS, labels, subject_label

TILE = "void cutlass::device_kernel<cutlass::gemm::Gemm<cutlass::half_t, cutlass::Shape<{}, 128, 32>, Sm90, Tma>>(P)"
GREAT = "void fold<{}, " + ", ".join(f"Layer<{n}>" for n in range(30)) + ", {}>(float *)"


@pytest.mark.parametrize(
    ("kernels", "shown"),
    [
        (["void gemm_tiled<16>(const float *)", "void gemm_tiled<32>(const float *)"],
         ["gemm_tiled<16>", "gemm_tiled<32>"]),
        (["void gemm_tiled<(int)16>(float *)", "void ns::gemm_tiled<(int)32, Op<2>>(float *)", "saxpy(int)"],
         ["gemm_tiled<(int)16>", "gemm_tiled<(int)32, Op<2>>", "saxpy"]),
        (["scale(float *)", "scale(double *)"], ["scale(float *)", "scale(double *)"]),
        (["a::scale<4>(float *)", "(anonymous namespace)::scale<4>(float *)"],
         ["a::scale<4>(float *)", "(anonymous namespace)::scale<4>(float *)"]),
        ([TILE.format(64), TILE.format(256)], ["device_kernel<\u202664\u2026>", "device_kernel<\u2026256\u2026>"]),
    ],
)  # fmt: skip
def test_what_differs_is_shown(kernels, shown):
    assert list(labels(kernels).values()) == shown


def test_labels_are_short_and_distinct_even_where_names_differ_at_both_ends():
    kernels = [GREAT.format(first, last) for first in (1, 2) for last in (1, 2)]
    shown = labels(kernels)
    assert len(set(shown.values())) == len(kernels)
    assert max(map(len, shown.values())) <= MAX_LABEL_CHARS
    assert all(label.startswith("fold<") for label in shown.values())


def test_a_subject_that_is_no_kernel_stays():
    assert subject_label({"kernel": None, "subject": "idle"}, {}) == "idle"
    assert subject_label({"kernel": "void k<1>(int)", "subject": "stage"}, {"void k<1>(int)": "k<1>"}) == "stage"
