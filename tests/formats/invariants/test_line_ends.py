"""Files that end without a newline, hold NUL bytes of a power cut, or have other signs between their cells."""

import io

import pandas as pd
import pytest

from profsvc import formats
from profsvc.errors import InputError
from profsvc.formats.timeseries.column_mapping import read_columns

SMI = b"timestamp, index, power.draw [W]\n" + b"".join(
    b"2026/03/01 12:00:%02d.000, 0, %d.25 W\n" % (n, 50 + n) for n in range(40)
)
METER = b"Time (s);Power (W)\n" + b"".join(b"%d;%d,5\n" % (n, 20 + n) for n in range(40))
TRACE = b"""Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),\
Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name
10,20,1,1,1,1,32,1,1,16,0,0,,,,,A (0),1,7,fill
40,20,2,1,1,1,32,1,1,16,0,0,,,,,A (0),1,7,fill
""".replace(b"\\\n", b"")
FILES = {"nvidia-smi": SMI, "timeseries": METER, "nsys-stats": TRACE}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_complete_last_row_without_a_newline_is_stored_and_said_to_lack_it(name, end, read_all):
    data = FILES[name].replace(b"\n", end)
    whole, cut = read_all(data, name), read_all(data[: -len(end)], name)
    assert (cut.stored, cut.skipped, cut.rejected) == (whole.stored, whole.skipped, 0)
    line = data.count(b"\n")
    assert f"the last line, {line}, was stored although it has no newline" in cut.message
    assert "newline" not in whole.message


@pytest.mark.parametrize("name", FILES)
def test_a_last_row_that_lacks_cells_is_rejected(name, read_all):
    data = FILES[name]
    cut = data[: data.rfind(b"," if name != "timeseries" else b";")]
    content = read_all(cut, name)
    assert content.rejected == 1
    assert "newline" not in content.message


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [2, 3, -1])
def test_nul_bytes_of_a_power_cut_cost_their_lines_alone(name, place, read_all, values_of):
    lines = FILES[name].splitlines(keepends=True)
    whole = read_all(b"".join(lines), name)
    at = place if place > 0 else len(lines)
    content = read_all(b"".join([*lines[:at], b"\0" * 5000 + b"12,3\n", *lines[at:]]), name)
    assert (content.stored, content.skipped, content.rejected) == (whole.stored, whole.skipped, 1)
    assert content.rejects[["line", "lines"]].to_numpy().tolist() == [[at + 1, 1]]
    assert "NUL" in content.rejects["reason"][0]
    assert content.rejects["text"].tolist() == ["12,3"]
    assert "1 line with NUL bytes" in content.message

    def moved(value):
        places = [n + (n > at) if isinstance(n, int) else n for n in value[1:3]]  # of its line, and of its launch
        return (value[0], *places, *value[3:])

    known, seen = (
        {v for v in values_of(one) if v[0] != "metrics" and v[-2] not in ("line", "launch")} for one in (whole, content)
    )
    assert seen == set(map(moved, known))


def test_nuls_behind_the_last_line_cost_nothing(read_all):
    content = read_all(SMI + b"\0" * 4096, "nvidia-smi")
    assert (content.stored, content.rejected) == (40, 1)


def test_a_binary_file_is_still_refused():
    with pytest.raises(InputError, match="NUL"):
        list(formats.read(io.BytesIO(b"\0\1\n" * 50), "nvidia-smi")[1])


@pytest.mark.parametrize("sign", ["\t", ";"])
@pytest.mark.parametrize("columns", [("#1=time:s", "#2=temperature:degC"), ("#1=time:s", "#3=power:W")])
def test_decimal_commas_are_no_separators_in_a_log_without_a_header(sign, columns):
    rows = [sign.join(f"{n + part / 4:.6f}".replace(".", ",") for part in range(3)) for n in range(30)]
    data = "\r\n".join([*rows, ""]).encode()
    batches = list(formats.read(io.BytesIO(data), columns=read_columns(columns))[1])
    samples = pd.concat([batch.tables["samples"] for batch in batches if "samples" in batch.tables])
    place = int(columns[1][1]) - 1
    assert sum(batch.lines_rejected for batch in batches) == 0
    assert samples["value"].tolist() == [n + place / 4 for n in range(30)]
    assert samples["elapsed_ns"].tolist() == [n * 10**9 for n in range(30)]
