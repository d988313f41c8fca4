"""A nightly report in its forms: what it says, in the right order, and nothing of an upload acts on anything."""

import html.parser
import json
import re
from typing import Any

import pytest

from profsvc.pipeline.nightly.verdict import one_line
from profsvc.reports.nightly import formats as nightly_formats
from profsvc.reports.nightly import plots as nightly_plots
from profsvc.reports.nightly.open_findings import open_groups
from profsvc.reports.nightly.parts import parts
from profsvc.reports.plots import figure

HOSTILE = (
    "<script>alert(1)</script>\r\nBcc: x@y.z \u202e=cmd|' /C'!A0 `rm` [a](http://evil.example) @all #1 *b* _c_ \x1b[2J"
)
PLAIN = "gemm"


def finding(number: int, subject: str, **more: Any) -> dict[str, Any]:
    points = [
        {"run_id": n, "run": f"r{n}", "at": f"2026-01-{n + 1:02}T02:00:00Z", "value": 300.0 + 10 * (n > 7),
         "low": 299.0, "high": 301.0 + 10 * (n > 7), "raw": 305.0 + n}
        for n in range(12)
    ]  # fmt: skip
    return {
        "finding_id": number, "series": f"s{number}", "project": "lab", "kernel": None, "subject": subject,
        "device": "NVIDIA H200", "sensor": "power.draw", "quantity": "power", "kind": "power", "unit": "W", "worse": 1,
        "before": 300.0, "after": 310.0, "change": 1 / 30, "raw_before": 305.0, "raw_after": 314.0, "p": 1e-7,
        "adjusted_p": 1e-6, "noise": 0.5, "reference_temperature_c": 40.0, "points_before": 8, "points_after": 4,
        "run_before_id": 7, "run_id": 8, "run": "r8", "run_before": "r7", "state": "new", "why": ["it is sure"],
        "compare": "profsvc compare id:7 id:8 --power",
        "accept": f"profsvc findings set {number} accepted --because WHY",
        "changed_at": "2026-01-09T02:00:00Z", "history": points, **more,
    }  # fmt: skip


def document(subject: str = PLAIN, **more: Any) -> dict[str, Any]:
    first = finding(1, subject)
    refused = {"file_name": subject, "run": subject, "message": subject}
    uploads = {"received": 3, "rejected_lines": 2, "refused": [refused],
               "partial": [{"file_name": "b.csv", "run": "r8", "lines_rejected": 2, "lines": 40}]}  # fmt: skip
    predicted = {
        "kernel_after": subject,
        "source": "profsvc",
        "criterion": "divergence",
        "predicted": 1.5,
        "achieved": 1.48,
    }
    return {
        "report_id": 4, "project": None, "night": "2026-01-12", "zone": "Europe/Berlin",
        "begins": "2026-01-12T00:00:00+01:00", "ends": "13 Jan 2026 00:00",
        "since": {"report_id": 3, "night": "2026-01-11"}, "changed": True,
        "runs": [{"run_id": 8, "name": subject, "project": "lab", "device": "H200", "at": "2026-01-12", "build": None}],
        "series": {"looked_at": 9, "tested": 8, "short": 1, "needed": 2, "corrected": 2},
        "findings": [first, finding(2, "idle", worse=0, before=80.0, after=70.0, history=None)],
        "moved": [finding(3, subject) | {"was": "new", "state": "fixed", "because": "back"}],
        "repeated": [{"run": subject, "project": "lab", "repeats": subject, "build": subject}],
        "open": [finding(5, subject)],
        "reruns": [first | {"value": 320.0, "expected": 300.0, "command": f"measure {subject} again"}],
        "explained": [first], "uncorrected": [{"reason": subject, "windows": 2, "runs": 1}], "uploads": uploads,
        "predictions": [predicted], "one_line": f"1 regression in 1 run; worst: {subject} power +3.3 %", "counts": {},
        **more,
    }  # fmt: skip


TITLES = [
    "Changes", "Status of earlier findings", "Re-runs requested", "Open findings",
    "Explained by temperature", "Files that failed", "Predictions", "Power not corrected",
    "Repeated files", "Runs",
]  # fmt: skip


class Page(html.parser.HTMLParser):
    """The tags of a page, its text, and what its attributes ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.asked: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.asked += [value or "" for name, value in attrs if name in {"src", "href"}]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def test_every_form_says_the_same_parts_in_the_same_order():
    made = document()
    assert [part.title for part in parts(made)] == TITLES
    for form in ("text", "md"):
        written = nightly_formats.in_form(made, form)
        places = [written.index(title) for title in TITLES]
        assert places == sorted(places)
    page = Page(nightly_formats.html(made)).text
    assert [line for line in page.splitlines() if line in TITLES] == TITLES
    assert json.loads(nightly_formats.in_form(made, "json")) == made


@pytest.mark.parametrize("form", ["text", "md", "html"])
def test_a_change_is_told_with_its_unit_the_raw_value_and_why(form):
    written = nightly_formats.in_form(document(), form)
    for words in ("300 W", "310 W", "+3.3 %", "305 W", "it is sure", "13 Jan 2026 00:00", "Europe/Berlin",
                  "profsvc compare id:7 id:8 --power", "profsvc findings set 1 accepted", "accurate",
                  "2 of 40 lines rejected"):  # fmt: skip
        assert words in written, words


def test_a_gain_predicted_for_a_kernel_that_became_slower_was_not_achieved():
    (told,) = document()["predictions"]
    words = {}
    for achieved in (0.95, 1.0, 1.003):
        times = {"before_ns": achieved * 2e6, "after_ns": 2e6}
        made = document(predictions=[told | {"predicted": 1.05, "achieved": achieved} | times])
        (part,) = [part for part in parts(made) if part.title == "Predictions"]
        words[achieved] = part.rows[0][-1]
    assert words == {0.95: "regression", 1.0: "no change", 1.003: "no change"}


def test_a_quiet_night_is_short():
    empty: dict[str, Any] = {
        "findings": [], "moved": [], "open": [], "reruns": [], "explained": [], "uncorrected": [], "predictions": [],
        "runs": [], "uploads": {"received": 0, "rejected_lines": 0, "refused": [], "partial": []}, "changed": False,
        "repeated": [], "one_line": "nothing changed: 1 run, 9 series",
    }  # fmt: skip
    made = document() | empty
    written = nightly_formats.text(made)
    assert written.splitlines()[0] == "nothing changed: 1 run, 9 series"
    assert len(written.splitlines()) == 5
    assert nightly_formats.subject(made) == "profsvc 2026-01-12: nothing changed: 1 run, 9 series"
    assert nightly_formats.short(made) == []
    assert Page(nightly_formats.html(made)).asked == []


def test_nothing_of_an_upload_acts_in_a_page():
    page = Page(nightly_formats.html(document(HOSTILE)))
    assert "script" not in page.tags
    assert set(page.tags) <= {"html", "head", "meta", "title", "body", "h1", "h2", "h3", "p", "div", "table", "thead",
                              "tbody", "tr", "th", "td", "ul", "li", "code", "img", "hr"}  # fmt: skip
    assert page.asked
    assert all(one.startswith("data:image/png;base64,") for one in page.asked)
    assert "\u202e" not in page.text
    assert "<script>alert(1)</script>" in page.text


def test_nothing_of_an_upload_acts_in_markdown():
    written = nightly_formats.markdown(document(HOSTILE))
    assert not re.search(r"(?<!\\)[<>]", written)
    assert "http:" not in written
    outside = re.sub(r"`[^`\n]*`", "", written)
    assert not re.search(r"(?<![\\&])[@#](?!#* [A-Z]|## )", re.sub(r"(?m)^### .*$", "", outside))
    assert not re.search(r"(?<!\\)\[a", outside)
    assert "`rm`" not in outside.replace("\\`", "")
    assert not [c for c in written if not c.isprintable() and c != "\n"]
    rows = [line for line in written.splitlines() if line.startswith("|")]
    tables = [len(re.findall(r"(?<!\\)\|", line)) for line in rows]
    assert len(set(tables)) > 1
    assert all(count >= 4 for count in tables)


def test_nothing_of_an_upload_acts_in_a_terminal_or_the_head_of_a_mail():
    made = document(HOSTILE)
    assert not [c for c in nightly_formats.text(made) if not c.isprintable() and c != "\n"]
    lines = [nightly_formats.subject(made), *nightly_formats.short(made)]
    assert all(line.isprintable() for line in lines)
    assert len(nightly_formats.subject(document("k" * 1_000_000))) <= nightly_formats.MAX_SUBJECT_CHARS
    assert len(nightly_formats.html(document("k" * 1_000_000, findings=[]))) < 3_000_000


def test_pictures_are_of_the_worst_and_can_lie_beside_the_page():
    made = document()
    (picture,) = nightly_formats.pictures(made)
    assert picture.name == "finding-0"
    assert picture.png.startswith(b"\x89PNG")
    assert Page(nightly_formats.html(made, lambda one: f"cid:{one.name}@profsvc")).asked == ["cid:finding-0@profsvc"]
    assert nightly_formats.pictures(made) == [picture]


@pytest.mark.parametrize("dark", [False, True])
def test_the_history_of_a_finding_is_drawn(dark):
    row = finding(1, "$\\frac{a}{0}$ <b>")
    drawn = nightly_plots.history(row, "svg", dark=dark).decode()
    assert (figure.DARK if dark else figure.LIGHT).back in drawn
    assert "uncorrected" in drawn
    assert "40 \u00b0C" in drawn
    assert "<b>" not in drawn
    bare = row | {"history": [one | {"raw": None, "low": None, "high": None, "at": "?"} for one in row["history"]],
                  "unit": "ns", "before": 3e5, "after": 4e5, "reference_temperature_c": None, "run_id": 99}  # fmt: skip
    assert "us" in nightly_plots.history(bare, "svg").decode()


def test_runs_of_one_day_are_told_apart_by_their_times():
    row = finding(1, "saxpy")
    hours = [one | {"at": f"2026-03-04T{n:02}:05:06Z"} for n, one in enumerate(row["history"])]
    drawn = nightly_plots.history(row | {"history": hours}, "svg").decode()
    assert "00:05:06" in drawn
    assert drawn.count("04 Mar 2026") == 1
    assert "00:05:06" not in nightly_plots.history(row, "svg").decode()


def test_long_lists_are_cut_loudly():
    many = [finding(n, f"k{n}") for n in range(40)]
    written = nightly_formats.text(document(findings=many, open=many))
    assert "and 10 more findings: profsvc findings list" in written
    assert "k29" in written
    assert nightly_formats.short(document(findings=many, open=[])) == [
        f"k{n} power (power.draw, NVIDIA H200) +3.3 %" for n in range(5)
    ] + ["and 35 more"]


@pytest.mark.parametrize("rest", [1, 2, 226])
def test_every_part_counts_what_it_does_not_show(rest):
    rows = [finding(n, f"k{n}", history=None) for n in range(30 + rest)]  # so that no pictures are drawn
    moved = [row | {"was": "new", "state": "fixed", "because": "back"} for row in rows]
    told = [row | {"shape": "levels", "since": row["changed_at"]} for row in rows]
    made = document(findings=rows, open=[], moved=moved, told=told, explained=rows)
    s = "" if rest == 1 else "s"
    for form in ("text", "md", "html"):
        written = nightly_formats.in_form(made, form)
        assert written.count(f"and {rest} more finding{s}: profsvc findings list") == 2
        assert f"and {rest} more change{s}: -o json" in written
        assert f"and {20 + rest} more changes: -o json" in written


def test_open_findings_are_told_by_the_change_that_they_began_with():
    def row(number: int, commit: str | None, ns: float, day: int, **more: Any) -> dict[str, Any]:
        times = {"kind": "duration", "quantity": "duration", "unit": "ns", "before": 1e5, "after": 1e5 + ns,
                 "cost_ns": 10 * ns, "kernel": f"k{number}", "changed_at": f"2026-01-{day:02}T02:00:00Z"}  # fmt: skip
        return finding(number, f"k{number}", build=commit, **times) | more

    driver = {"fact": "driver_version", "part": "context", "title": "driver", "unit": "", "kernel": None,
              "before": None, "after": None, "before_text": "570", "after_text": "580", "change": None}  # fmt: skip
    both = [row(n, "c" * 40, 1e3 * n, 9, differences=[driver]) for n in (1, 2)]
    # The same kernel as another tool measured it costs nothing more, and is no other regression.
    both.append(both[1] | {"finding_id": 30, "sensor": "nsys"})
    many = [row(n, f"{n:07}", 10.0, 10 + n) for n in range(3, 12)]
    better = row(40, None, -5e4, 30, worse=0, run_id=77)
    made = document(open=[better, *many, *both, row(50, "f" * 40, 1.0, 2)])
    groups = open_groups(made["open"])
    assert groups[0]["text"] == (
        "since cccccccccccc: 2 regressions of 2 kernels (+30 us per run), the costliest #2 k2 duration +2.0 %; "
        "changed with it: driver 570 to 580"
    )
    assert groups[-1]["regressions"] == 0  # however much time it saves
    (part,) = [part for part in parts(made) if part.title == "Open findings"]
    assert [row[0] for row in part.rows] == ["2", "3", "4", "5", "6", "50"]
    assert part.rows[-1][5] == "2026-01-02 (oldest)"
    assert part.words == [
        "and 6 more changes with 6 findings",
        "all 14: profsvc findings list --state new --state confirmed --project lab",
    ]
    assert one_line_of(open=made["open"]).split("; ")[-2:] == [
        "12 regressions of 11 changes still open (the costliest #2 k2 duration +2.0 % since cccccccccccc)",
        "1 improvement still open",
    ]
    texts = [f"open {group['text']}" for group in groups[:3]]
    assert nightly_formats.short(made)[-4:] == [*texts, "and 9 more open findings"]


def one_line_of(**parts: Any) -> str:
    quiet: dict[str, Any] = {"findings": [], "moved": [], "reruns": []}
    quiet["open_groups"] = open_groups(parts.get("open", []))
    uploads = {"received": 1, "rejected_lines": 0, "refused": [], "partial": []}
    return one_line(document(uploads=uploads, **(quiet | parts)))


def test_the_subject_line_is_true_read_alone():
    slower = finding(5, "gemm")
    suspected = slower | {"value": 314.7, "expected": 300.0}
    short = {"looked_at": 385, "tested": 0, "short": 385, "needed": 4, "corrected": 0}
    said = {
        "quiet": one_line_of(),
        "suspected": one_line_of(reruns=[suspected]),
        "open": one_line_of(open=[slower, slower | {"quantity": "energy"}, finding(6, "saxpy")]),
        "short": one_line_of(series=short),
        "no runs": one_line_of(runs=[], open=[slower]),
        "found": one_line_of(findings=[slower], reruns=[suspected], open=[slower]),
    }
    assert said == {
        "quiet": "nothing changed: 1 run, 9 series, 1 of them too short to judge",
        "suspected": "nothing certain: 1 suspected change (re-run wanted) in 1 run: gemm power +4.9 %; "
        "1 of 9 series too short to judge",
        "open": "nothing new: 1 run, 9 series, 1 of them too short to judge; 2 regressions still open "
        "(the costliest #5 gemm power +3.3 % since run r8)",
        "short": "no series could be judged: 1 run, all 385 series are too short, the closest needs 4 more runs",
        "no runs": "nothing new: no runs since the report of 2026-01-11; 1 regression still open "
        "(#5 gemm power +3.3 % since run r8)",
        "found": "1 regression, 1 suspected change (re-run wanted) in 1 run; worst: gemm power +3.3 %; "
        "1 regression still open (#5 gemm power +3.3 % since run r8); 1 of 9 series too short to judge",
    }


def test_a_run_with_the_files_of_another_is_named():
    told = nightly_formats.text(document())
    (begin,) = (place for place in range(len(told)) if told.startswith("Repeated files", place))
    assert told[begin:].splitlines()[1:3] == [
        "  run   project  has the files of  build", "  gemm  lab      gemm              gemm",
    ]  # fmt: skip
    assert "Repeated files" not in nightly_formats.text(document() | {"repeated": []})
