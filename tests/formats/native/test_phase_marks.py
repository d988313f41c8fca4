"""Phase marks: headers, and limits."""

import pytest

from profsvc import formats
from profsvc.errors import BrokenInputError
from profsvc.formats.native import phase_marks
from profsvc.specs.files.formats import format_pages
from tests.formats.fixtures import PHASE


def test_a_forced_reader_refuses_another_header(read_all):
    with pytest.raises(
        BrokenInputError, match="line 2 is not a header of phase marks, which is unix_s,mark,type,sms,extra or"
    ):
        read_all(b"# mine\nunix_s,mark,sms\n", "marks")


@pytest.mark.parametrize(
    "header", ["time,mark,name,power", "time,mark,mark,name", "extra,time,mark,name", "time;mark;name", "name,begin"]
)
def test_another_header_is_not_ours(header):
    assert not phase_marks.sniff(f"{header}\n1,2,3\n".encode())


def test_a_log_of_a_meter_may_have_a_column_called_mark(read_all):
    assert read_all(b"Time (s),mark,Power (W)\n0.5,1,2\n1,1,3\n").reader == "timeseries"


def test_a_file_of_too_many_phases_is_refused(monkeypatch, read_all):
    monkeypatch.setattr(phase_marks, "MAX_PHASES", 2)
    row = b"a,1795180600,1795180601\n"
    assert len(read_all(b"name,begin,end\n" + 2 * row).ranges) == 2
    with pytest.raises(BrokenInputError, match="line 4: a file may have at most 2 phases; split it"):
        read_all(b"name,begin,end\n" + 3 * row)


def test_many_rejects_come_in_batches(read_all):
    content = read_all(b"name,begin,end\na,1795180600,1795180601\n" + b"b,x,y\n" * 2500)
    assert (len(content.batches) > 2, content.rejected, len(content.rejects)) == (True, 2500, 2500)


def test_many_begins_without_an_end_are_told_in_short(read_all):
    lines = b"".join(b"1795180600,begin,p%d\n" % i for i in range(5))
    message = "no end for the begin on line 2, 3, 4 and 2 more"
    assert read_all(b"unix_s,mark,type\n" + lines).message == message


def test_the_examples_of_the_page_are_read(read_all):
    first, second = (
        "\n".join(line.strip() for line in part.strip().splitlines()) + "\n"
        for part in format_pages()[phase_marks.NAME].split("Example:\n")[1].split("\nor\n")
    )
    rows = [
        [{name: row[name] for name in PHASE if name != "line"} for row in read_all(text.encode()).rows("ranges")]
        for text in (first, second)
    ]
    assert rows[0] == rows[1]
    assert rows[0][0]["launches"] == 3268
    assert formats.detect(first.encode()).NAME == "marks"
