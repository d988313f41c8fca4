"""What a nightly report says, part by part, in words and rows of text: its text, Markdown and page show the same."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from profsvc.analysis.night import OPEN
from profsvc.analysis.outcomes import NO_CHANGE, REGRESSION, outcomes
from profsvc.errors import counted
from profsvc.reports.ratios import times
from profsvc.reports.rows import cell, visible

Row = Mapping[str, Any]
FEW, MANY = 10, 30
LONGEST = 60
JUDGED = {1: "worse", 0: "better", None: ""}
SCALES = {"ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")), "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz"))}
NEAR = 1.1
"""A prediction came true if what was achieved lies within this factor of it."""


class Finding(NamedTuple):
    """One change: its head, why it is believed, and what to do next."""

    head: str
    why: Sequence[str]
    commands: Sequence[str]
    picture: str | None


class Part(NamedTuple):
    """A part of a report: a title, rows under heads, words below; ``findings`` have more to say each."""

    title: str
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    words: Sequence[str] = ()
    findings: Sequence[Finding] = ()


def short(text: Any, longest: int = LONGEST) -> str:
    """Return a name of limited length without characters that act, cut in its middle.

    >>> short("a" * 9 + "b", 5)
    'aa\u2026ab'
    """
    whole = visible("" if text is None else str(text))
    left = longest // 2
    return whole if len(whole) <= longest else f"{whole[:left]}\u2026{whole[len(whole) - (longest - left - 1) :]}"


def amount(value: float | None, unit: str) -> str:
    """Write a value with its unit, a time or a clock in the one that suits it.

    >>> amount(125_000.0, "ns"), amount(0.25, "1"), amount(None, "W")
    ('125 us', '0.25', 'unknown')
    """
    if value is None:
        return "unknown"
    for size, name in SCALES.get(unit, ()):
        if abs(value) >= size:
            return f"{cell(float(value) / size)} {name}"
    shown = unit.replace("degC", "\u00b0C")
    return cell(float(value)) + (f" {shown}" if unit != "1" else "")


def percent(row: Row, before: str = "before", after: str = "after") -> str:
    """Write a change as a share; of a criterion and a temperature, whose share means little, the difference."""
    old, new = row[before], row[after]
    if old is None or new is None:
        return ""
    if row["kind"] in ("criterion", "temperature", "data_quality") or old == 0:
        return f"{'+' * (new >= old)}{amount(new - old, row['unit'])}"
    return f"{100 * (new - old) / abs(old):+.1f} %"


def named(row: Row) -> str:
    """Say what a finding is about."""
    about = [short(row.get("label") or row["subject"]), str(row["quantity"]).replace("_", " ")]
    where = [short(row[name], 40) for name in ("sensor", "device") if row.get(name)]
    return " ".join(about) + (f" ({', '.join(where)})" if where else "")


def judged(row: Row) -> str:
    """Say whether a change is worse or better, or what became of it since.

    >>> judged({"worse": 1}), judged({"worse": 1, "state": "accepted"}), judged({"worse": None, "state": "new"})
    ('worse', 'accepted', '')
    """
    state = row.get("state", OPEN[0])
    return JUDGED[row["worse"]] if state in OPEN else str(state)


def parts(document: Row) -> list[Part]:
    """Return the parts of a report that have something to say, the worst first."""
    made = (
        _found(document), _moved(document), _reruns(document), _open(document), _explained(document),
        _uploads(document), _predictions(document), _uncorrected(document), _runs(document),
    )  # fmt: skip
    return [part for part in made if part.rows or part.words or part.findings]


def _found(document: Row) -> Part:
    heads = ("#", "what", "before", "after", "change", "as measured", "", "first run")
    rows = document["findings"]
    cells = [
        (
            "" if row["finding_id"] is None else str(row["finding_id"]), named(row), amount(row["before"], row["unit"]),
            amount(row["after"], row["unit"]), percent(row), _measured(row), judged(row), short(row["run"]),
        )
        for row in rows[:MANY]
    ]  # fmt: skip
    told = [
        Finding(
            f"{named(row)}: {amount(row['before'], row['unit'])} -> {amount(row['after'], row['unit'])} "
            f"({', '.join(filter(None, (percent(row), judged(row))))})",
            [visible(str(words)) for words in row["why"]],
            [command for command in (row["compare"], row["accept"]) if command],
            f"finding-{number}" if row.get("history") else None,
        )
        for number, row in enumerate(rows[:FEW])
    ]
    return Part("What changed", heads, cells, _more(rows, MANY, "findings"), told)


def _measured(row: Row) -> str:
    if row.get("raw_before") is None:
        return ""
    both = f"{amount(row['raw_before'], row['unit'])} -> {amount(row['raw_after'], row['unit'])}"
    return f"{both} ({percent(row, 'raw_before', 'raw_after')})"


def _more(rows: Sequence[Any], shown: int, what: str) -> list[str]:
    return [f"and {len(rows) - shown} more {what}: profsvc findings list"] if len(rows) > shown else []


def _moved(document: Row) -> Part:
    rows = [
        (str(row["finding_id"]), named(row), percent(row), f"{row['was']} -> {row['state']}", str(row["because"]))
        for row in document["moved"]
    ]
    return Part("What became of older findings", ("#", "what", "change", "state", "because"), rows)


def _reruns(document: Row) -> Part:
    rows = [
        (
            named(row), amount(row["expected"], row["unit"]), amount(row["value"], row["unit"]),
            percent(row, "expected", "value"), cell(row["p"]), short(row["run"]),
        )
        for row in document["reruns"][:MANY]
    ]  # fmt: skip
    words = ["not sure yet, so no alarm: two or three runs more tell a change from a spike"] if rows else []
    words += list(dict.fromkeys(visible(str(row["command"])) for row in document["reruns"][:FEW]))
    heads = ("what", "expected", "tonight", "change", "p", "run")
    return Part("Re-runs wanted", heads, rows, words + _more(document["reruns"], MANY, "series"))


def _open(document: Row) -> Part:
    rows = [
        (str(row["finding_id"]), named(row), percent(row), str(row["state"]), str(row["changed_at"])[:10])
        for row in document["open"][:MANY]
    ]
    words = _more(document["open"], MANY, "findings")
    return Part("Still open from before", ("#", "what", "change", "state", "since"), rows, words)


def _explained(document: Row) -> Part:
    rows = [
        (named(row), _measured(row), f"{amount(row['before'], row['unit'])} -> {amount(row['after'], row['unit'])}")
        for row in document["explained"][:MANY]
    ]
    words = ["these changed as measured, and did not at one temperature: no alarm"] if rows else []
    return Part("Explained by temperature", ("what", "as measured", "corrected"), rows, words)


def _uploads(document: Row) -> Part:
    uploads = document["uploads"]
    rows = [(short(one["file_name"]), short(one["run"]), f"refused: {short(one['message'], 200)}")
            for one in uploads["refused"][:MANY]]  # fmt: skip
    rows += [
        (short(one["file_name"]), short(one["run"]), f"{one['lines_rejected']} of {one['lines']} lines rejected")
        for one in uploads["partial"][:MANY]
    ]
    more = len(uploads["refused"]) + len(uploads["partial"]) - len(rows)
    words = [f"and {more} more: v1_refusals and v1_rejects hold them"] if more > 0 else []
    return Part("Files that failed", ("file", "run", "what happened"), rows, words)


def _predictions(document: Row) -> Part:
    scored = [one for one in document["predictions"] if one.get("scored", 1)]
    known = [one for one in scored if one["predicted"] and one["achieved"]]
    rows = [
        (
            short(one["kernel_after"]), str(one["source"]), str(one["criterion"]).replace("_", " "),
            times(one["predicted"]), times(one["achieved"]), came_true(one),
        )
        for one in sorted(known, key=lambda one: -abs(one["achieved"] - 1))[:FEW]
    ]  # fmt: skip
    words = [f"and {len(known) - FEW} more: profsvc report accuracy"] if len(known) > FEW else []
    heads = ("kernel", "foretold by", "of", "foretold", "achieved", "")
    return Part("What was foretold", heads, rows, words)


def came_true(row: Row) -> str:
    """Say whether a prediction came true, in what a kernel became.

    >>> [came_true({"predicted": p, "achieved": a}) for p, a in ((1.5, 1.45), (1.05, 0.95), (1.05, 1.0), (1.0, 1.3))]
    ['came true', 'regression', 'nothing came', 'more came']
    """
    # An old report does not know the times, which say what is below the smallest change.
    before, after = (row.get(name) for name in ("before_ns", "after_ns"))
    if not (before and after):
        before, after = 1e9 * row["achieved"], 1e9
    (made,) = outcomes([before], [after], [row["predicted"]])
    if made.word == REGRESSION:
        return REGRESSION
    if made.word == NO_CHANGE and made.share is not None:
        return "nothing came"
    ratio = row["achieved"] / row["predicted"]
    return "came true" if 1 / NEAR <= ratio <= NEAR else "less came" if ratio < 1 else "more came"


def _uncorrected(document: Row) -> Part:
    words = [
        f"{counted(row['windows'], 'window')} of power of {counted(row['runs'], 'run')} not corrected: "
        f"{short(row['reason'], 200)}"
        for row in document["uncorrected"][:FEW]
    ]
    return Part("Power as measured only", words=words)


def _runs(document: Row) -> Part:
    rows = [
        (short(one["name"]), short(one["project"]), short(one["device"]), str(one["at"]), short(one["build"], 20))
        for one in document["runs"][-MANY:]
    ]
    more = len(document["runs"]) - len(rows)
    words = [f"and {more} older ones"] if more > 0 else []
    return Part("Runs", ("run", "project", "device", "at (UTC)", "binary"), rows, words)


def head(document: Row) -> list[str]:
    """Return the lines above the parts: the report in one line, and which night it is of."""
    since = document["since"]
    before = f"since report {since['report_id']} of {since['night']}" if since else "and all before, as it is the first"
    scope = f"project {short(document['project'])}" if document["project"] else "all projects"
    return [
        visible(str(document["one_line"])),
        f"night of {document['night']}, {scope}; the day ends at {document['ends']} ({document['zone']}); uploads of "
        f"that day {before}",
    ]


def foot(document: Row) -> list[str]:
    """Return the lines under the parts: what was looked at, and how sure the findings are."""
    series = document["series"]
    short_ones = f"; too few runs yet: {series['short']} (the nearest needs {series['needed']} more)"
    return [
        f"{series['looked_at']} series looked at, {series['tested']} tested{short_ones if series['short'] else ''}; "
        f"{series['corrected']} of power and energy at one temperature.",
        "A finding needs p of 0.01 at most, at most 5 % false ones among the night's, and a change worth telling. Both "
        "hold for series that scatter as their history shows: a level they go to by themselves is news the first time.",
    ]


def lines(part: Part) -> Iterable[str]:
    """Yield the words of the findings of a part, one under the other."""
    for finding in part.findings:
        yield finding.head
        yield from (f"  {words}" for words in finding.why)
        yield from (f"  $ {command}" for command in finding.commands)
