"""Errors for files of unrecognized formats: the command at their end works."""

import gzip
import io
import itertools
import re
import shlex
import sqlite3
import subprocess
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from profsvc import formats
from profsvc.errors import InputError
from profsvc.formats.timeseries.column_mapping import read_columns
from profsvc.specs.files.foreign import foreign_files, foreign_text, foreign_texts

VALUES = [20.5 + n for n in range(12)]
TABLES = {
    "no time": "power_w,temp_c\n" + "".join(f"{value},40\n" for value in VALUES),
    "no time, tabs": "id\tPower (W)\n".replace("id", "state") + "".join(f"7\t{value}\n" for value in VALUES),
    "an odd date": "Timestamp,Power (W)\n" + "".join(f"2024_03_01-12h{n},{v}\n" for n, v in enumerate(VALUES)),
    "one column": "".join(f"{value}\n" for value in VALUES),
    "one column with a unit": "".join(f"{value} W\n" for value in VALUES),
    "columns apart by spaces": "".join(f"{n}  {value}\n" for n, value in enumerate(VALUES)),
    "carriage returns": "Time (s);Power (W)\r" + "".join(f"{n};{value}\r" for n, value in enumerate(VALUES)),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_line_that_a_refusal_names_reads_the_file(name, tmp_path):
    path = tmp_path / "a log.csv"
    path.write_text(TABLES[name], encoding="utf-8", newline="")
    with pytest.raises(InputError) as caught, path.open("rb") as stream:
        formats.read(stream, name=str(path))
    line = re.search(r"(?:awk|tr) .*", str(caught.value))[0]
    command, _, upload = line.partition(" | profsvc upload - ")
    command = command.removesuffix(" | profsvc upload -")
    words = shlex.split(upload)
    columns = [word for option, word in itertools.pairwise(words) if option == "--column"]
    made = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True).stdout
    batches = list(formats.read(io.BytesIO(made), columns=read_columns(columns))[1])
    samples = [
        row for batch in batches if "samples" in batch.tables for row in batch.tables["samples"].to_dict("records")
    ]
    (table,) = (batch.tables["sensors"] for batch in batches if "sensors" in batch.tables)
    sensors = {row["sensor_index"]: row["quantity"] for row in table.to_dict("records")}
    power = [row for row in samples if sensors[row["sensor_index"]] == "power"]
    assert [row["value"] for row in power] == VALUES
    assert [row["elapsed_ns"] for row in power] == [n * 10**9 for n in range(12)]


def test_a_time_in_nanoseconds_since_1970_is_told_without_a_unit():
    rows = b"".join(b'smi,"host=n1,index=0",1718186462%09d,7%d.5\n' % (n, n) for n in range(9))
    data = b"name,tags,time,power_draw\n" + rows
    with pytest.raises(InputError, match="--column time=time --column NAME=power:W"):
        formats.read(io.BytesIO(data), name="log.csv")
    batches = list(formats.read(io.BytesIO(data), columns=read_columns(["time=time", "power_draw=power:W"]))[1])
    assert sum(batch.lines_stored for batch in batches) == 9


@pytest.mark.parametrize("name", ["timestamp", "elapsed"])
def test_a_time_without_a_unit_is_refused_with_the_option_that_says_it(name):
    data = f"{name},power_w\n".encode() + b"".join(b"%d.5,%d\n" % (n, n) for n in range(9))
    with pytest.raises(InputError, match=f"--column {name}=time:s") as caught:
        list(formats.read(io.BytesIO(data))[1])
    option = re.search(r"--column (\S+)", str(caught.value))[1]
    assert sum(b.lines_stored for b in formats.read(io.BytesIO(data), columns=read_columns([option]))[1]) == 9


TEXTS = {
    "counters of perf stat -j": '{"counter-value" : "1.5", "unit" : "msec", "event" : "task-clock"}\n',
    "turbostat": "Core\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\tPkgWatt\n-\t-\t12\t0.5\t2400\t12.3\n",
    "nvidia-smi for": "Tue May  7 10:00:00 2024\n+------+\n| NVIDIA-SMI 535.129.03   Driver Version: 535.129.03 |\n",
    "rocm-smi": "\n======= ROCm System Management Interface =======\nGPU  Temp\n0    35.0c\n",
    "key_averages": "-----  -----\n Name    Self CPU %      Self CPU    # of Calls\n-----  -----\n",
    "Google Benchmark": '{"context": {},\n "benchmarks": [{"name": "BM_x/8", "real_time": 12.5}]}\n',
    "pytest-benchmark": '{\n "machine_info": {\n},\n "benchmarks": [\n {"name": "test_a"}]}\n',
    "hyperfine": '{\n  "results": [\n    {\n      "command": "sleep 0.1",\n      "mean": 0.1}]}\n',
    "Catch2": '<?xml version="1.0"?>\n<Catch2TestRun name="t">\n<BenchmarkResults name="a"/></Catch2TestRun>\n',
    "of Google Benchmark": "name,iterations,real_time,cpu_time,time_unit\nBM_x/8,1000,12.5,12.5,ns\n",
    "a table of times without a clock": "kernel,time_ms,power_w\nsaxpy,0.5,180.2\ngemm,1.25,250.1\n",
    "a log of MLPerf": ':::MLLOG {"key": "loadgen_version", "value": "4.0", "time_ms": 0.012}\n',
    "reports of nsys stats without a row": "Processing [a.sqlite] with [kern_sum.py]...\nSKIPPED: a.sqlite does not "
    "contain CUDA kernel data.\n",
    "JSON of no known tool": '{"time": 1718186462.1, "power": 71.5}\n{"time": 1718186463.1, "power": 72.5}\n',
    "NVBench": "Benchmark,Device,Device Name,Samples,GPU Time (sec)\ncopy,0,NVIDIA H200,512,1e-05\n",
    "powermetrics": "*** Sampled system activity (Tue May  7) (1002ms elapsed) ***\nGPU Power: 51 mW\n",
    "gpustat": "node1                Tue May  7 10:00:00 2024  535.129.03\n[0] NVIDIA A100 | 31'C,   0 % |\n",
    "nsys profile": "Generating '/tmp/nsys-report-1234.qdstrm'\nGenerated:\n    /home/u/report1.nsys-rep\n",
    "an error of nvidia-smi": 'Field "power.drawn" is not a valid field to query.\n',
    "the XML": "<?xml version='1.0' ?>\n<nvidia_smi_log>\n<timestamp>now</timestamp>\n</nvidia_smi_log>\n",
    "nvidia-smi -L": "GPU 0: NVIDIA A100 (UUID: GPU-0d2f)\n",
    "nvidia-smi topo": "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\n",
    "unitrace": "=== Device Timing Summary ===\n\n Total Execution Time (ns):  94801\n",
    "InfluxDB": "board,index=0 power=61.5,temp=40i 1773480413000000000\n",
    "Prometheus": "# HELP nvidia_smi_power_draw_watts power.draw\nnvidia_smi_power_draw_watts 61.5\n",
    "ipmitool": "Pwr Consumption  | 412.000    | Watts      | ok\n",
    "Redfish": '{"@odata.type": "#Power.v1_7_1.Power", "PowerControl": []}\n',
    "rocm-smi or amd-smi": '{"card0": {"GPU use (%)": "97"}}\n',
    "amd-smi monitor": "GPU  POWER  GPU_T  MEM_T\n  0   61 W  42 C  40 C\n",
    "Scaphandre": '{"host":{"consumption":35200000.0,"timestamp":1718897011.12},"consumers":[],"sockets":[]}\n',
    "nvtop": '[\n {"device_name": "NVIDIA A100", "temp": "40C"}\n]\n',
    "rocprofv3": '{\n "rocprofiler-sdk-tool": [\n {}\n ]\n}\n',
    "allocations of rocprofv3": '"Kind","Operation"\n"SCRATCH_MEMORY","SCRATCH_MEMORY_ALLOC"\n',
    "rocprof-compute": "workload_name,command,hostname\nsaxpy,./saxpy,n1\n",
    "CarbonTracker": "2026-03-14 09:26:53 - CarbonTracker: The following components were found: GPU\n",
    "likwid-perfctr": "CPU name:\tIntel\nCPU type:\tIntel Icelake\nGroup 1: ENERGY\n",
    "a pointer of Git LFS": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
    "gprof": "Flat profile:\n\nEach sample counts as 0.01 seconds.\n",
    "HTA": "kernel_type,sum,max,min,std,mean,num_kernels\nCOMPUTATION,12.5,2.5,0.1,1.2,1.25,10\n",
    "eco2AI": "id,project_name,experiment_description,epoch,start_time,duration(s)\n1,p,d,N/A,2022-06-01 10:00:00,12\n",
    "MXNet": "Profile Statistics.\n\tNote that counter items are counter values and not time units.\n",
    "nsys export": '{"Type":79,"CudaEvent":{"startNs":"100","endNs":"200"}}\n{"id":1,"value":"saxpy"}\n',
    "a table of nsys export": '"start","end","deviceId","contextId"\n100,150,0,1\n',
    "ncu --query-metrics": "Device NVIDIA H200 (GH100)\nMetric Name  Metric Type  Metric Unit\n-----  -----  -----\n",
    "ncu --list-sections": "------ ------ ------\nIdentifier  Display Name  Enabled  Filename\n------ ------ ------\n",
    "a page of HTML": "<!DOCTYPE html>\n<html>\n<table><tr><th>Time (%)</th></tr></table>\n",
    "VTune": "Computing Task\tWork Size:Global\tComputing Task:Total Time\nzeCopy\t\t0.001\n",
}


# Texts whose message has a command that makes a log of them: the text, and what must be read of it.
TWO = [61.5, 62.0]
READABLE = {
    "perf stat": (
        "# started\n\n     1.0   61.5 Joules power/energy-pkg/\n     3.0  124.0 Joules power/energy-pkg/\n",
        *("power", TWO),
    ),
    "energies of perf stat -j": (
        '{"interval" : 1.000000, "counter-value" : "61.5", "unit" : "Joules", "event" : "power/energy-pkg/"}\n'
        '{"interval" : 1.000000, "counter-value" : "7.5", "unit" : "Joules", "event" : "power/energy-ram/"}\n'
        '{"interval" : 3.000000, "counter-value" : "124.0", "unit" : "Joules", "event" : "power/energy-pkg/"}\n',
        *("power", TWO),
    ),
    "perf stat -x,": (
        "     1.0,61.5,Joules,power/energy-pkg/,1,100\n     1.0,7.5,Joules,power/energy-ram/,1,100\n"
        "     3.0,124.0,Joules,power/energy-pkg/,1,100\n",
        *("power", TWO),
    ),
    "MangoHud": (
        "os,cpu,gpu,ram,kernel,driver,cpuscheduler\nArch,AMD,Radeon,32,6.9,Mesa,none\nfps,gpu_temp,gpu_power,elapsed\n"
        "120,40,61.5,100000000\n120,41,62.0,200000000\n",
        *("power", TWO),
    ),
    "Rigol": (
        "X,CH1,CH2,Start,Increment,\nSequence,Volt,Volt,-6.0e-03,1.0e-06\n0,61.5,1,\n1,62.0,1,\n",
        *("voltage", TWO),
    ),
    "an oscilloscope": (
        "x-axis,1,2\nsecond,Volt,Volt\n-5.0E-03,61.5,1\n-4.0E-03,62.0,1\n",
        *("voltage", TWO),
    ),
    "Tektronix": (
        "Record Length,2.5e+03,,-0.004,61.5,\nSample Interval,4e-06,,-0.003,62.0,\n",
        *("voltage", TWO),
    ),
    "Siglent": (
        "Record Length,Analog:2\nSample Interval,1e-06\nVertical Units,V\nSecond,Value\n-1e-06,61.5\n0,62.0\n",
        *("voltage", TWO),
    ),
    "GEOPM": (
        "# geopm_version: 3\nTIME|REGION_HINT|GPU_POWER\n0.0|nan|61.5\n0.005|nan|62.0\n",
        *("power", TWO),
    ),
    "pyJoules": (
        "timestamp;tag;duration;package_0;dram_0\n1595513410.455;a;0.5;30750000;9\n1595513411.455;b;2;124000000;9\n",
        *("power", TWO),
    ),
    "annotated CSV of InfluxDB": (
        "#group,false,false\n#datatype,string,long\n#default,_result,\n,result,table,_start,_stop,_time,_value,_field\n"
        ",,0,2026-03-14T09:00:00Z,2026-03-14T10:00:00Z,2026-03-14T09:26:53Z,61.5,power\n"
        ",,0,2026-03-14T09:00:00Z,2026-03-14T10:00:00Z,2026-03-14T09:26:54Z,62.0,power\n",
        *("power", TWO),
    ),
}
TEXTS |= {name: text for name, (text, _, _) in READABLE.items() if name != "perf stat -x,"}


@pytest.mark.parametrize("text", ["0,50.1\n1,50.2\n", "1,234.5\n2,34.5\n"])
def test_two_columns_of_numbers_are_not_taken_for_one(text):
    with pytest.raises(InputError, match="give its columns by number") as caught:
        formats.read(io.BytesIO(text.encode()), name="log.csv")
    assert "awk" not in str(caught.value)
    columns = read_columns(re.findall(r"--column '(.*?)'", str(caught.value)))
    assert sum(b.lines_stored for b in formats.read(io.BytesIO(text.encode()), columns=columns)[1]) == 2


@pytest.mark.parametrize("text", ["50,1\n50,25\n", "1,234.5\n1,235.5\n", "5.5\n6\n"])
def test_one_column_of_numbers_is_counted_by_its_rows(text):
    with pytest.raises(InputError, match="count its rows as seconds: awk"):
        formats.read(io.BytesIO(text.encode()), name="log.csv")


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress], ids=["gzip", "zstd"])
def test_a_file_that_is_compressed_twice_is_said_to_be(pack):
    with pytest.raises(InputError, match=r"raw[.]csv[.]gz is compressed twice; decompress it once"):
        formats.read(io.BytesIO(gzip.compress(pack(b"a,b\n1,2\n"))), name="raw.csv.gz")


def database(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_lines_of_an_export_in_a_database_are_no_export(tmp_path):
    header = '"Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","BeginNs","EndNs"'
    path = database(
        tmp_path / "own.db",
        "create table lines(text)",
        f"insert into lines values('\n{header}\n0,\"k\",0,0,0,1,1,64,64,5,9\n')",
    )
    with pytest.raises(InputError, match="is a SQLite database, but not of"), path.open("rb") as stream:
        formats.read(stream, name="own.db")


def test_a_store_of_profsvc_is_named(demo):
    with pytest.raises(InputError, match=r"is a store of profsvc.*: profsvc --store own[.]db runs$"):
        formats.read(io.BytesIO(Path(demo.url.database).read_bytes()), name="own.db")


def test_every_known_text_is_tried():
    assert len(TEXTS) == len(foreign_texts())
    assert {foreign_text(text.splitlines()) for text in TEXTS.values()} == set(foreign_texts())


def test_the_table_of_amd_smi_is_known_with_and_without_a_time():
    assert foreign_text(["TIMESTAMP  GPU  XCP  POWER   GPU_T"]) == foreign_text([TEXTS["amd-smi monitor"]])


def test_a_report_of_vtune_is_known_with_commas_and_quotes():
    assert foreign_text(['"Computing Task","Total Time"', '"gemm",0.532']) == foreign_text([TEXTS["VTune"]])


@pytest.mark.parametrize("name", READABLE)
def test_the_command_for_a_known_text_makes_a_log_of_it(name, tmp_path):
    text, quantity, values = READABLE[name]
    path = tmp_path / "a log.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught, path.open("rb") as stream:
        formats.read(stream, name=str(path))
    command = re.search(r"(?:awk|sed|cut|grep) .*", str(caught.value))[0]
    assert read_by(command, quantity) == values


def read_by(command: str, quantity: str) -> list[float]:
    """Return the readings of a quantity after the command that a message names."""
    command, _, upload = command.rpartition(" | profsvc upload -")
    words = shlex.split(upload)
    columns = [word for option, word in itertools.pairwise(words) if option == "--column"]
    made = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True).stdout
    batches = list(formats.read(io.BytesIO(made), columns=read_columns(columns))[1])
    (table,) = (batch.tables["sensors"] for batch in batches if "sensors" in batch.tables)
    sensors = {row["sensor_index"]: row["quantity"] for row in table.to_dict("records")}
    samples = [
        row for batch in batches if "samples" in batch.tables for row in batch.tables["samples"].to_dict("records")
    ]
    return [row["value"] for row in samples if sensors[row["sensor_index"]] == quantity]


def test_a_table_that_a_spreadsheet_saved_names_its_tool():
    data = b"timestamp;index;power.draw [W]\n2026/03/14 09:26:53,123;0;61,5 W\n2026/03/14 09:26:54,123;0;61,5 W\n"
    with pytest.raises(InputError, match="columns of nvidia-smi with other separators than commas"):
        formats.read(io.BytesIO(data), name="log.csv")


def test_a_log_with_a_column_of_results_is_told_how_to_name_its_time():
    data = b"timestamp,power (W),duration (s)\n1773480413.5,61.5,1\n1773480414.5,62.0,2\n"
    with pytest.raises(InputError, match="--column timestamp=time:s") as caught:
        formats.read(io.BytesIO(data), name="log.csv")
    assert "not a supported date" not in str(caught.value)
    columns = read_columns(["timestamp=time:s", "power (W)=power:W"])
    assert sum(batch.lines_stored for batch in formats.read(io.BytesIO(data), columns=columns)[1]) == 2


def test_how_long_a_kernel_took_is_a_clock_only_if_the_user_says_so():
    data = TEXTS["a table of times without a clock"].encode()
    columns = read_columns(["time_ms=time:ms", "power_w=power:W", "kernel=skip"])
    assert sum(batch.lines_stored for batch in formats.read(io.BytesIO(data), columns=columns)[1]) == 2


@pytest.mark.parametrize("name", TEXTS)
def test_a_known_text_is_told_what_to_upload(name):
    with pytest.raises(InputError, match=f"{name}.*, which is not read: ") as caught:
        formats.read(io.BytesIO(TEXTS[name].encode()), name="a file.txt")
    assert "FILE" not in str(caught.value).replace("--out 'a file.txt'", "")


@pytest.mark.parametrize("kind", foreign_files(), ids=lambda kind: kind.ending)
def test_what_only_its_own_tool_reads_is_named_without_its_bytes(kind):
    data = (kind.begins or b"\0\1\2") + b"secret\0\1"
    with pytest.raises(InputError) as caught:
        formats.read(io.BytesIO(data), name=f"my run{kind.ending}")
    said = str(caught.value)
    assert said.startswith(f"my run{kind.ending} is {kind.what}")
    assert "secret" not in said
    assert "FILE" not in said
    if kind.begins:
        with pytest.raises(InputError, match=kind.what):
            formats.read(io.BytesIO(data))


@pytest.mark.parametrize("member", ["[Content_Types].xml", "mimetype"])
def test_a_workbook_is_not_called_an_archive(member):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(member, "application/vnd.oasis.opendocument.spreadsheet")
    for name in ("log.xlsx", "log.ods", None):
        with pytest.raises(InputError, match=r"is a spreadsheet workbook, .*--convert-to csv"):
            formats.read(io.BytesIO(packed.getvalue()), name=name)


def test_bytes_that_are_no_text_are_not_shown():
    with pytest.raises(InputError) as caught:
        formats.read(io.BytesIO(b"\0\1secret\n\2"), name="x.bin")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("label", "quantity", "unit"),
    [("Consumption/W", "power", "W"), ("RAM (MB)", "memory", "byte"), ("Used [MB]", "memory", "byte")],
)
def test_units_behind_signs_and_of_memory_are_known(label, quantity, unit):
    data = f"Time (s),{label}\n0,1\n1,2\n".encode()
    (row,) = [r for b in formats.read(io.BytesIO(data))[1] for r in b.tables["sensors"].to_dict("records")]
    assert (row["quantity"], row["unit"]) == (quantity, unit)


def test_a_unit_that_is_not_known_is_named():
    data = b"Time (s),Flow (furlongs)\n0,1\n1,2\n"
    (row,) = [r for b in formats.read(io.BytesIO(data))[1] for r in b.tables["sensors"].to_dict("records")]
    assert "unknown unit 'furlongs'" in row["quality"]


def test_a_power_log_without_any_time_says_so():
    batches = list(formats.read(io.BytesIO(b"index, power.draw [W]\n0, 50.1 W\n0, 50.2 W\n"), "nvidia-smi")[1])
    assert "the log has no time" in batches[-1].message


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("device;quantity;x;y;unit;method\nA board;F_DRAMThr;1;0,5;;\n", "characterization"),
        ("DEVICE,QUANTITY,X,Y\nA board,F_DRAMThr,1,0.5\n", "characterization"),
        ("device\tquantity\tx\ty\nA board\tF_DRAMThr\t1\t0.5\n", "characterization"),
        ("name;begin;end\nload;2026-11-20T13:21:21Z;2026-11-20T13:21:28Z\n", "marks"),
        ("Block;Warp;Seq;Site;Address;Kind\n0;0;0;0;0;load\n", "memory-trace"),
    ],
)
def test_another_separator_or_case_of_a_format_of_our_own_is_named(text, own):
    with pytest.raises(InputError, match=f"its columns are those of {own}, .*; see: profsvc formats {own}"):
        formats.read(io.BytesIO(text.encode()), name="mine.csv")


def test_columns_without_a_unit_are_not_guessed():
    text = "Correlation_Id,Function,Start_Timestamp,End_Timestamp\n0,hipMemcpyDtoHAsync,310,350\n"
    with pytest.raises(InputError) as caught:
        formats.read(io.BytesIO(text.encode()), name="trace.csv")
    assert "for a log with a time, name its columns" in str(caught.value)
    assert "awk" not in str(caught.value)


@pytest.mark.parametrize("banner", ["==PROF== Connected to process 7\n", ""])
def test_a_page_with_semicolons_names_its_tool_below_banners_too(banner):
    names = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size")
    names += ("Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value")
    cells = (
        "0",
        "7",
        "app",
        "h",
        "saxpy",
        "1",
        "7",
        "(256, 1, 1)",
        "(64, 1, 1)",
        "0",
        "9.0",
        "S",
        "Duration",
        "us",
        "2",
    )
    text = banner + "".join(";".join(f'"{cell}"' for cell in row) + "\n" for row in (names, cells))
    with pytest.raises(InputError, match="columns of ncu-details with other separators than commas"):
        formats.read(io.BytesIO(text.encode()), name="page.csv")


@pytest.mark.parametrize(
    ("tables", "seen"),
    [
        (("StringTable", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"), "an nvprof profile; .* -i prof.out$"),
        (("moz_places",), "a SQLite database, but not of Nsight Systems"),
    ],
)
def test_a_database_of_no_known_tool_is_named(tables, seen, tmp_path):
    path = tmp_path / "prof.out"
    with closing(sqlite3.connect(path)) as database:
        for table in tables:
            database.execute(f"CREATE TABLE {table} (id INTEGER)")
        database.commit()
    with pytest.raises(InputError, match=seen), path.open("rb") as stream:
        formats.read(stream, name="prof.out")


@pytest.mark.parametrize("sign", [";", "\t"])
def test_separators_in_the_text_of_a_profiler_are_not_a_table(sign):
    text = f"==PROF== Connected to process 7\nloss{sign}0.5\n  saxpy(float *), Context 1, Stream 7\n"
    assert formats.read(io.BytesIO(text.encode()), name="log.txt")[0].NAME == "ncu-text"
