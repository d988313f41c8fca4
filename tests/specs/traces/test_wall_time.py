"""The categories of the wall time and the patterns of names: the tables as they are, and rows that are refused."""

import re

import pytest

from profsvc.errors import DomainError
from profsvc.specs import activity_category, wall_time_categories
from profsvc.specs.traces.activities import read_activities
from profsvc.specs.traces.wall_time import read_categories

HEAD, ROW = "category,kind,title,meaning,first_step\n", "kernels,device,Kernels,a kernel runs,see it\n"
NAMES = "kind,pattern,category\n"


def test_work_of_the_device_covers_its_gaps() -> None:
    kinds = [one.kind for one in wall_time_categories().values()]
    assert kinds == sorted(kinds)
    assert {name for name, one in wall_time_categories().items() if not one.is_recoverable} == {"kernels", "graphs"}


@pytest.mark.parametrize(
    ("kind", "category", "names"),
    [
        ("kernel", "collectives", ("ncclKernel_AllReduce_RING_LL_Sum_float", "ncclDevKernel_SendRecv", "rcclKernel",
                                   "mscclKernel_Sum", "vllm::cross_device_reduce_1stage")),
        ("kernel", "kernels", ("gemm", "acclrccle", "reduce_kernel", "")),
        ("transfer", "device_copies", ("DtoD", "PtoP", "DtoA")),
        ("transfer", "host_copies", ("HtoD", "DtoH", "HtoA", "kind 17", "")),
        ("transfer", "unified_memory", ("unified HtoD",)),
        ("transfer", "memsets", ("memset",)),
        ("call", "launch_calls", ("cudaLaunchKernel_v7000", "cuLaunchKernelEx", "hipGraphLaunch")),
        ("call", "sync_calls", ("cudaStreamSynchronize", "hsa_signal_wait_scacquire", "cuCtxSynchronize")),
        ("call", "copy_calls", ("cudaMemcpyAsync", "cuMemcpyHtoDAsync_v2", "hipMemset")),
        ("call", "memory_calls", ("cudaMalloc", "cuMemFree_v2", "hipHostMalloc", "cudaHostRegister")),
        ("call", "other_calls", ("cudaLaunchHostFunc", "cudaRegisterFatBinary", "cudaEventQuery", "x\ny")),
    ],
)  # fmt: skip
def test_names_belong_to_one_category(kind: str, category: str, names: tuple[str, ...]) -> None:
    assert {name: activity_category(kind, name) for name in names} == dict.fromkeys(names, category)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + ROW + ROW, "line 3: category 'kernels' is empty or there twice"),
        (HEAD + ROW.replace("device", "host"), "line 2: kind must be one of"),
        (HEAD + ROW.replace("see it", ""), "line 2: 'kernels' needs first_step"),
    ],
)
def test_a_wrong_category_is_named(text: str, message: str) -> None:
    with pytest.raises(DomainError, match=re.escape(message)):
        read_categories(text)


@pytest.mark.parametrize(
    ("row", "message"),
    [("kernel,(,kernels", "is no regular expression"), ("os,x,kernels", "kind must be"), ("call,x,y", "category must")],
)
def test_a_wrong_pattern_is_named(row: str, message: str) -> None:
    with pytest.raises(DomainError, match=f"line 2: .*{re.escape(message)}"):
        read_activities(f"{NAMES}{row}\n")
