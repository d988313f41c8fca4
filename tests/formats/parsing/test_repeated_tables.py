"""A report that stands twice in one file is stored once; other reports of the same program are all stored."""

import gzip
import io

import pytest

from profsvc.formats.ncu import raw
from profsvc.formats.parsing.repeated_tables import MAX_ALIKE, RepeatedTables
from profsvc.formats.parsing.text import Text
from tests.formats.both_ways import READERS, unpacked
from tests.formats.fixtures import good, shown

FOLDERS = ("ncu_raw", "ncu_details", "ncu_summary", "ncu_text", "nvprof", "nvprof_text")
FOLDERS += ("nsys_stats", "nsys_text", "nsys_json")
# Row by row a long report takes seconds; tests/formats/test_both_ways.py reads it so once.
MAX_BYTES_BOTH_WAYS = 500_000
IN_BLOCKS = {"ncu_raw", "ncu_details", "nvprof", "nsys_stats"}
# One of its tables names no process and the last one does, so its copy is of that process.
OF_ANOTHER_PROCESS = {"one_blank.txt"}
# Text pages without the line of a process: their launches may be alike. And files that end inside what is appended to.
WITHOUT_PROCESS = {"copied_from_terminal.txt", "finnish_2020.txt", "summary_per_nvtx_raw.txt"}
CUT = {"ncu_text/truncated.txt", "nsys_json/cut.json"}
FILES = [path for path in good(*FOLDERS) if path.name not in OF_ANOTHER_PROCESS | WITHOUT_PROCESS]
FILES = [path for path in FILES if shown(path) not in CUT]

NCU_HEADER = '"ID","Process ID","Process Name","Host Name","Kernel Name","Device","gpu__time_duration.sum"\n'
NVPROF = (
    "=={pid}== NVPROF is profiling process {pid}, command: ./app\n=={pid}== Profiling result:\n"
    '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,us,,us,us,us,\n'
    '"GPU activities",100.00,{time},1,{time},{time},{time},"[CUDA memset]"\n'
)
NSYS = (
    "Processing [{file}] with [/opt/nsys/reports/cuda_gpu_kern_sum.py]... \n"
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    "100.0,{time},1,{time},{time},{time},{time},0.0,saxpy\n\n"
)


def ncu(*times: str, process: int = 7, units: str = "us") -> bytes:
    rows = (f'"{number}","{process}","a.out","host","saxpy","0","{time}"\n' for number, time in enumerate(times))
    return (NCU_HEADER + f'"","","","","","","{units}"\n' + "".join(rows)).encode()


def appended(first: bytes, second: bytes) -> bytes:
    """Two files in one; the second without its byte order mark, below a whole line of the first."""
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return first + second[2:]
    return first.removesuffix(b"\n") + b"\n" + second.removeprefix(b"\xef\xbb\xbf")


def rows(content) -> dict[str, int]:
    return {name: len(table) for name, table in content.tables.items() if len(table) and name != "rejects"}


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_a_report_appended_to_itself_is_stored_once(path, read_all):
    data = unpacked(path)
    once, twice = read_all(data), read_all(appended(data, data))
    assert rows(twice) == rows(once)
    assert twice.stored == once.stored
    assert ("byte for byte" in twice.message) == bool(once.stored)
    folder = path.parent.name
    if folder in IN_BLOCKS and len(data) < MAX_BYTES_BOTH_WAYS:
        READERS[folder].agree(appended(data, data))


@pytest.mark.parametrize("other", [ncu("5", "6", process=8), ncu("1", "3"), ncu("1"), ncu("1", "2", units="ns")])
def test_reports_that_differ_are_stored_each(other, read_all):
    one = ncu("1", "2")
    content = read_all(one + other + b"the program says\n")
    assert len(content.launches) == len(read_all(one).launches) + len(read_all(other).launches)
    assert content.message == ""


def test_the_lines_of_each_repetition_are_named(read_all):
    one, other = ncu("1", "2"), ncu("8")
    content = read_all(one + other + b"==PROF== Connected\n" + one + one)
    assert content.launches["line"].tolist() == [3, 4, 7]
    assert (content.stored, content.skipped, content.rejected) == (3, 13, 0)
    assert content.message == (
        "lines 9 to 12 repeat those from line 1 on, lines 13 to 16 repeat those from line 1 on: byte for byte the same "
        "table, so it is stored once; if it is of another run, upload it as a file of its own"
    )
    assert "and so do 2 more tables:" in read_all(one * 6).message


def test_the_file_may_end_inside_a_repetition(read_all):
    one = ncu("1", "2", "3")
    for end in range(one.index(b'"1","7"') - 1, len(one)):
        content = read_all(one + one[:end])
        assert (len(content.launches), content.stored) == (3, 3), one[:end]
        assert content.skipped + content.rejected + 3 == len((one + one[:end]).splitlines())
        assert content.message.startswith("lines 6 to ")
    assert read_all(one + one[:-5]).message.startswith("lines 6 to 10 repeat those from line 1 on:")


def test_of_a_longer_copy_only_what_is_new_is_stored(read_all):
    content = read_all(ncu("1", "2") + ncu("1", "2", "3") + ncu("1", "2", "3", "4"))
    assert content.launches["line"].tolist() == [3, 4, 9, 15]
    assert content.launches["source_id"].tolist() == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("page", "same", "others"),
    [
        (NVPROF, {"pid": 1, "time": "1.088"}, [{"pid": 2, "time": "1.088"}, {"pid": 1, "time": "1.120"}]),
        (
            NSYS,
            {"file": "a.sqlite", "time": 1088},
            [{"file": "b.sqlite", "time": 1088}, {"file": "a.sqlite", "time": 9}],
        ),
    ],
)
def test_a_banner_may_tell_reports_with_equal_rows_apart(page, same, others, read_all):
    one = page.format_map(same).encode()
    assert len(read_all(one + one).kernel_summaries) == 1
    for other in others:
        content = read_all(one + page.format_map(other).encode())
        assert len(content.kernel_summaries) == 2
        assert content.message == ""


def test_members_of_gzip_and_lines_with_nul_bytes(read_all):
    one = ncu("1", "2")
    assert len(read_all(gzip.compress(one) + gzip.compress(one)).launches) == 2
    content = read_all(b"\0\0\n" + one + one)
    assert len(content.launches) == 2
    assert content.message.startswith("lines 6 to 9 repeat those from line 2 on:")


LONG = {
    "ncu_raw": lambda n: ncu(*map(str, range(n))),
    "ncu_details": lambda n: (
        '"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        + "".join(f'"{i // 3}","7","f","S","M{i % 3}","%","{i}"\n' for i in range(n))
    ).encode(),
    "nvprof": lambda n: (
        '"Start","Duration","Name","Correlation_ID"\nns,ns,,\n'
        + "".join(f'{i},{i % 7},"cudaLaunchKernel",{i}\n' for i in range(n))
    ).encode(),
    "nsys_stats": lambda n: (
        "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n"
        + "".join(f"{i},{i % 7},cudaLaunchKernel,0,{i},1,2,20,a\n" for i in range(n))
    ).encode(),
}


@pytest.mark.parametrize("name", LONG)
def test_long_tables_are_compared_in_blocks(name):
    one = LONG[name](600)
    reader = READERS[name]
    assert reader.agree(one + one, block=1000)[1][:2] == [600, 2 * one.count(b"\n") - 600]
    # A difference in the last row is seen.
    other = one[:-20] + one[-20:].replace(b"599", b"598")
    assert reader.agree(one + other, block=1000)[1][0] == 1200


def test_a_table_is_compared_with_the_latest_of_many_that_begin_alike(monkeypatch, read_all):
    compared, compare = [], RepeatedTables._common_lines
    monkeypatch.setattr(
        RepeatedTables, "_common_lines", lambda self, *tables: compared.append(tables) or compare(self, *tables)
    )
    many = b"".join(ncu("1", str(number)) for number in range(3 * MAX_ALIKE))
    assert len(read_all(many).launches) == 6 * MAX_ALIKE
    assert len(compared) < 3 * MAX_ALIKE**2
    compared.clear()
    assert len(read_all(ncu("1", "2") * 3 * MAX_ALIKE).launches) == 2
    assert len(compared) == 3 * MAX_ALIKE - 1


def test_nothing_is_read_again_unless_a_header_and_a_first_row_repeat(monkeypatch):
    asked = []
    monkeypatch.setattr(Text, "blocks_at", lambda self, place, *sizes: asked.append(place) or iter(()))
    list(raw.read(io.BytesIO(ncu("1", "2") + NCU_HEADER.replace("Device", "Context").encode())))
    assert asked == []


NSYS_JSON = (
    "Processing [{file}] with [/opt/nsys/reports/cuda_gpu_kern_sum.py]... \n"
    '[{{"Total Time (ns)": 8, "Instances": 1, "Avg (ns)": 8.0, "Name": "fill"}},\n'
    ' {{"Total Time (ns)": {time}, "Instances": 1, "Avg (ns)": {time}.0, "Name": "saxpy"}}]\n'
)


def test_a_list_of_json_is_a_copy_only_of_one_of_the_same_report_file(read_all):
    one = NSYS_JSON.format(file="a.sqlite", time=1088).encode()
    empty = b"Processing [a.sqlite] with [/b/x.py]... \n[]\n"
    content = read_all(one + empty + one)
    assert content.kernel_summaries["line"].tolist() == [2, 3]
    assert (content.stored, content.skipped) == (2, 6)
    assert content.message.startswith("lines 7 to 8 repeat those from line 2 on: byte for byte")
    for file, time in [("b.sqlite", 1088), ("a.sqlite", 9)]:
        content = read_all(one + NSYS_JSON.format(file=file, time=time).encode())
        assert len(content.kernel_summaries) == 4
        assert content.message == ""
    assert len(read_all(one + one.replace(b": 8,", b":8,")).kernel_summaries) == 4


def test_a_list_of_json_may_be_cut_inside_a_copy(read_all):
    one = NSYS_JSON.format(file="a.sqlite", time=1088).encode()
    for end in range(one.index(b"}") + 1, len(one) - 2):
        content = read_all(one + one[:end])
        assert len(content.kernel_summaries) == 2, one[:end]
        assert content.stored + content.skipped + content.rejected == len((one + one[:end]).splitlines())


NCU_TEXT = (
    "[{pid}] saxpy@127.0.0.1\n"
    "  fill(float *) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
    "    Section: Command line profiler metrics\n"
    "    -------------------- ----------- ------------\n"
    "    Metric Name          Metric Unit Metric Value\n"
    "    -------------------- ----------- ------------\n"
    "    smsp__inst_executed.sum     inst          {count}\n"
    "    -------------------- ----------- ------------\n\n"
).replace("smsp__inst_executed.sum     inst          {count}", "inst_executed               inst           {count}")


def test_launches_of_a_text_page_that_are_alike_are_all_stored(read_all):
    one, other = (NCU_TEXT.format(pid=pid, count=64) for pid in (7, 8))
    launch = one.partition("\n")[2]
    page = (one + launch * 3).encode()
    assert len(read_all(page).launches) == 4
    twice = read_all(b"==PROF== Connected\n" + page + page)
    assert (len(twice.launches), len(twice.metrics), twice.stored) == (4, 4, 8)
    assert twice.message.startswith("lines 35 to 65 repeat those from line 2 on: byte for byte")
    assert len(read_all(page + other.encode()).launches) == 5
    assert len(read_all(page + NCU_TEXT.format(pid=7, count=32).encode()).launches) == 5
