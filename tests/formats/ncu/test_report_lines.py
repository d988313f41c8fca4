"""The lines that are made of a report: wrong ones are rejected, and instructions are those of its source page."""

import json
from pathlib import Path

import pytest

from profsvc.errors import BrokenInputError
from profsvc.formats.ncu import report_lines

FIXTURES = Path(__file__).parents[3] / "fixtures"
LINES = FIXTURES / "ncu_report_lines" / "two_launches.jsonl"


def test_lines_written_wrong_are_rejected_and_the_others_kept(read_all):
    lines = LINES.read_text(encoding="utf-8").splitlines()
    launch = json.loads(lines[2])
    wrong = [
        {**launch, "values": launch["values"][1:]}, {**launch, "values": 7}, {**launch, "values": [1] * 9},
        {**launch, "launch": []}, {**launch, "rules": 7}, {**launch, "rules": [[1]]},
        *({**launch, "rules": [["a", "b", "OPT", "", None, "text", [one]]]} for one in ([], ["a", "1", "b", "c"], 7)),
        {**launch, "ranges": 3},
        {**launch, "rules": [["a", "b", "OPT", "global", "12", "text", []]]}, {"columns": [["a"]]}, {"columns": 3},
        {"other": 1}, [], 7, None, launch,
    ]  # fmt: skip
    bad = [json.dumps(one) for one in wrong] + ["{", "[" * 100_000, ""]
    text = "\n".join([*lines[:-1], *bad, lines[-1], "{}"]) + "\n"
    content, good = read_all(text.encode()), read_all(LINES)
    assert content.launches["kernel"].tolist() == good.launches["kernel"].tolist()
    assert len(content.metrics) == len(good.metrics)
    assert len(content.rules) == len(good.rules)
    assert content.rejected == len(bad) + 1
    assert content.stored + content.skipped + content.rejected == text.count("\n")
    assert content.rejects["reason"].tolist()[-1] == "it follows the last line"


def test_lines_that_end_early_or_are_of_another_version_are_refused(read_all):
    lines = LINES.read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines)):
        with pytest.raises(BrokenInputError, match="the file is cut"):
            read_all(b"".join(lines[:count]))
    with pytest.raises(BrokenInputError, match="version '2'"):
        read_all(b"".join([lines[0].replace(b'"version": 1', b'"version": 2'), *lines[1:]]))


def test_the_line_with_most_samples_is_found_with_its_stall_reason(read_all):
    content = read_all(LINES.with_name("instructions.jsonl"))
    rows = content.source_lines
    hottest = rows[rows["kind"] == "line"].sort_values("samples").iloc[-1]
    assert (hottest["source_line"], hottest["source_text"], hottest["samples"]) == (45, "    atomicAdd(out, x);", 400)
    stalls = content.source_stalls.query(f"line_index == {hottest['line_index']}")
    assert stalls.set_index("reason")["samples"].to_dict() == {"Long Scoreboard": 390, "Selected": 10}
    assert rows["opcode"].tolist()[1] == "RED.E.ADD.F32.FTZ.RN.STRONG.GPU"


def lines_of(*said):
    first = {"profsvc": "ncu-report", "version": 1, "package": ""}
    launch = {"launch": {"ID": "0", "Kernel Name": "k"}, "values": []}
    lines = [first, {"columns": []}, launch, *said]
    return "".join(json.dumps(one) + "\n" for one in [*lines, {"end": 1}]).encode()


SOURCE = {
    "metrics": ["smsp__pcsamp_sample_count", "inst_executed", "smsp__pcsamp_warps_issue_stalled_wait"],
    "lines": [["/a.cu", 45, "atomicAdd(x, 1);"], ["/a.cu", 46, None]],
    "instructions": [
        [16, "   @P0 RED.E.ADD desc[UR4][R2.64], R5 ;", 0, 90, 8, 60],
        [32, "BRA 16", 0, 2, 8, None],
        [48, "EXIT", 1, 0, 1, 0],
        [64, "", None, None, 0, 0],
    ],
}


def test_instructions_are_summed_up_by_source_line(read_all):
    more = {**SOURCE, "lines": SOURCE["lines"][1:], "instructions": [[80, "NOP", 0, 1, 1, 1]]}
    content = read_all(lines_of(SOURCE, more))
    own = ["kind", "file", "source_line", "source_text", "opcode", "samples", "instructions", "line"]
    rows = content.source_lines[own]
    rows = rows.astype(object).where(rows.notna(), None).values.tolist()
    assert rows[0] == ["instruction", "/a.cu", 45, "atomicAdd(x, 1);", "RED.E.ADD", 90, 8, 4]
    assert rows[3] == ["instruction", None, None, None, None, 0, 0, 4]
    assert rows[5:] == [
        ["line", "/a.cu", 45, "atomicAdd(x, 1);", None, 92, 16, 4],
        ["line", "/a.cu", 46, None, None, 1, 2, 4],
    ]
    stalls = content.source_stalls
    assert stalls[["line_index", "samples"]].values.tolist() == [[0, 60], [4, 1], [5, 60], [6, 1]]
    assert (content.stored, content.skipped, content.rejected) == (3, 3, 0)


def test_instructions_that_are_wrong_are_rejected_as_a_whole(read_all):
    good = SOURCE["instructions"][0]
    wrong = [
        {**SOURCE, "metrics": 7}, {**SOURCE, "metrics": [7, "a", "b"]}, {**SOURCE, "lines": None},
        {**SOURCE, "lines": [["/a.cu", 45]]}, {**SOURCE, "lines": [[1, 45, ""]]}, {**SOURCE, "lines": [["/a", -1, ""]]},
        {**SOURCE, "instructions": 3}, {**SOURCE, "instructions": [good, good]}, {**SOURCE, "instructions": [good[:5]]},
        *({**SOURCE, "instructions": [[*good[:n], bad, *good[n + 1 :]]]} for n, bad in (
            (0, "16"), (0, -1), (0, 2**63), (0, True), (0, 1.5), (1, None), (2, 2), (2, "x"), (3, -1), (4, "9"),
            (5, float("nan")), (5, float("inf")),
        )),
    ]  # fmt: skip
    content = read_all(lines_of(*wrong, SOURCE, SOURCE))
    assert content.rejected == len(wrong) + 1
    assert content.rejects["reason"].tolist()[-1] == "an instruction occurs twice"
    assert content.source_lines["kind"].tolist() == ["instruction"] * 4 + ["line"] * 2


def test_instructions_of_a_launch_that_is_not_stored_are_rejected(read_all):
    launch = {"launch": {"ID": "0", "Kernel Name": "k"}, "values": []}
    for before in (launch, {"launch": 7, "values": []}, {"launch": {}, "values": ["1"]}):
        content = read_all(lines_of(before, SOURCE))
        assert len(content.source_lines) == 0
        assert content.rejects["reason"].tolist()[1] == "the instructions belong to no stored launch"
        assert len(content.launches) == 1


def test_units_apply_to_the_launches_that_follow(read_all):
    def columns(unit):
        return {"columns": [["gpu__time_duration.sum", unit], ["dram__bytes_read.sum", "Mbyte"]]}

    launches = [{"launch": {"ID": str(n), "Kernel Name": "k"}, "values": ["2.5", None]} for n in range(2)]
    first = {"profsvc": "ncu-report", "version": 1, "package": ""}
    said = [first, columns("us"), launches[0], columns("ms"), launches[1], {"end": 2}]
    content = read_all("".join(json.dumps(one) + "\n" for one in said).encode())
    assert content.reader == report_lines.NAME
    assert content.launches["duration_ns"].tolist() == [2500, 2_500_000]
    assert content.metrics["metric"].tolist() == ["gpu__time_duration.sum"] * 2
