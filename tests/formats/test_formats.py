import io
import re
import tarfile
import zipfile

import pandas as pd
import pytest

from profsvc import formats, specs
from profsvc.errors import DomainError, NotFoundError, UnknownFormatError
from profsvc.formats.ncu import details as ncu_details
from profsvc.formats.ncu import raw as ncu_raw
from profsvc.formats.ncu import text as ncu_text
from profsvc.formats.timeseries.column_mapping import read_columns
from profsvc.tables import Batch

RAW = (
    b'"ID","Process ID","Process Name","Host Name","Kernel Name","a"\n"","","","","","inst"\n"0","1","p","h","k","5"\n'
)
DETAILS = b'"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","1","k","a","inst","5"\n'
BANNER = b"==PROF== Connected to process 1 (/p)\n"


@pytest.mark.parametrize(
    ("head", "reader"),
    [
        (RAW, ncu_raw),
        (DETAILS, ncu_details),
        (BANNER, ncu_text),
        (BANNER + RAW, ncu_raw),
        (BANNER + DETAILS, ncu_details),
        (b"\xef\xbb\xbf" + RAW, ncu_raw),
        (RAW.decode().encode("utf-16"), ncu_raw),
        (RAW.replace(b'"', b"").replace(b"\n", b"\r\n"), ncu_raw),
        (b"    Metric Name   Metric Unit Metric Value\n", ncu_text),
    ],
)
def test_detect(head, reader):
    assert formats.detect(head) is reader


@pytest.mark.parametrize(
    ("head", "seen"),
    [
        (b"", "run.csv is empty"),
        (b"\n\n", "run.csv is empty"),
        (b"\n\x1b[31mhello\n", r"unrecognized format: run.csv begins with '\x1b[31mhello'; "),
        (RAW[:20], "it has no line end, so it may be cut"),
        (b"x" * 500, f"run.csv begins with '{'x' * 100}' ...; "),
        (b"ID,time\n1,2\n", "list the formats with: profsvc formats"),
        (b"\xfd7zXZ\x00\x00\x04\n", "unrecognized format: run.csv is compressed with xz; decompress it first"),
    ],
)
def test_unknown_format(head, seen):
    with pytest.raises(UnknownFormatError) as caught:
        formats.detect(head, "run.csv")
    assert seen in str(caught.value)


def test_quotes_of_another_program_are_undone_for_logs_of_boards_alone():
    log = b'"timestamp","index","power.draw [W]"\n"2026/03/04 05:06:07.250",0,171.5\n'
    assert formats.read(io.BytesIO(log))[0].NAME == "nvidia-smi"
    with pytest.raises(UnknownFormatError, match='begins with \'"LabVIEW Measurement"'):
        formats.read(io.BytesIO(b'"LabVIEW Measurement","",""\nTime,Dev1/ai0 (Volts)\n'), name="a.csv")


@pytest.mark.parametrize(
    "head", [b"\xfd7zXZ\x00\x00\x04\xe6", b"\x00\x01\x02\x03", b"\x93NUMPY\x01\x00v", b"\x7fELF\x02\x01,1;2\n"]
)
def test_what_is_no_text_is_not_called_a_cut_one(head):
    with pytest.raises(UnknownFormatError, match="unrecognized format") as caught:
        formats.detect(head, "run.csv")
    assert not re.search("cut|--column", str(caught.value))


def test_two_readers_match(monkeypatch):
    monkeypatch.setattr(ncu_text, "sniff", lambda head: True)
    with pytest.raises(UnknownFormatError, match="the file looks like ncu-raw and ncu-text; choose one with --format"):
        formats.detect(RAW)


def test_by_name():
    assert formats.by_name("ncu-raw") is ncu_raw
    with pytest.raises(NotFoundError, match="no format named 'ncu_raw'; did you mean 'ncu-raw'"):
        formats.by_name("ncu_raw")


def test_header_after_much_output(read_all):
    content = read_all(BANNER + b"loss 0.123456\n" * 100_000 + RAW)
    assert content.reader == "ncu-raw"
    assert (content.stored, content.skipped) == (1, 100_003)
    assert content.launches["line"].tolist() == [100_004]


def test_forced_reader(read_all):
    content = read_all(b"nothing known\n", "ncu-raw")
    assert (content.stored, content.skipped, content.message[:11]) == (0, 1, "no launches")


def test_tables_are_checked(monkeypatch):
    monkeypatch.setattr(ncu_raw, "read", lambda stream: iter([Batch({"launches": pd.DataFrame({"kernel": ["k"]})})]))
    _, batches = formats.read(io.BytesIO(RAW))
    with pytest.raises(DomainError):
        list(batches)


def test_every_reader_has_its_page_in_the_same_order():
    assert list(specs.format_pages()) == [reader.NAME for reader in formats.READERS]


@pytest.mark.parametrize("reader", formats.READERS, ids=lambda reader: reader.NAME)
def test_reader_contract(reader):
    assert formats.by_name(reader.NAME) is reader
    page = specs.format_pages()[reader.NAME]
    assert "\nExample" in page
    assert max(map(len, page.splitlines())) <= 120
    assert not reader.sniff(b"")
    assert not reader.sniff(b"neither a table nor a log\n")


@pytest.mark.parametrize("given", [{}, {"format": "ncu-details"}, {"columns": read_columns(["t=time:s", "P=power:W"])}])
def test_an_archive_that_only_stores_its_files_is_not_read_as_the_first_of_them(given):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("a.csv", "b.csv"):
            archive.writestr(name, "# a banner\nt;P\n0;1.5\n1;1.5\n")
    with pytest.raises(UnknownFormatError, match=r"two\.zip is compressed with zip; decompress it first"):
        formats.read(io.BytesIO(packed.getvalue()), name="two.zip", **given)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_of_logs_is_refused_and_not_read_as_one_log(mode):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name in ("a.csv", "b.csv"):
            about = tarfile.TarInfo(name)
            content = (
                b"timestamp, power.draw [W]\n2026/07/24 12:00:05.000, 200.10 W\n2026/07/24 12:00:06.000, 201.10 W\n"
            )
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    with pytest.raises(UnknownFormatError, match="logs is a tar archive; unpack it and upload its folder"):
        formats.read(io.BytesIO(packed.getvalue()), name="logs")
