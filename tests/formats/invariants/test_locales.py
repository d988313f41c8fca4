"""Every text fixture with its numbers printed by other locales: the same values or an `InputError`, never others."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from profsvc.errors import InputError
from profsvc.formats.parsing.head import head_text
from profsvc.formats.parsing.stream import open_stream

FIXTURES = Path(__file__).parents[3] / "fixtures"


class Signs(NamedTuple):
    """What groups thousands, and what marks decimals."""

    thousands: str
    decimal: str


LOCALES = {
    "C": Signs("", "."),
    "en": Signs(",", "."),
    "de": Signs(".", ","),
    "de without groups": Signs("", ","),
    "fr": Signs("\u202f", ","),
    "fr, old": Signs("\u00a0", ","),
    "fr, printed by C++": Signs(" ", ","),
    "ch": Signs("'", "."),
    "ch, typographic": Signs("\u2019", "."),
}


class Shape(NamedTuple):
    """Where the numbers of a format stand: in cells between signs, or anywhere in a line."""

    sign: str = ","
    fixed: str = "-"  # the columns that no locale changes
    anywhere: str = ""  # instead of cells: what stands before a number
    read: bool = False  # whether the locale is found out and the numbers are read


SHAPES = {
    "afterburner": Shape(),
    "characterization": Shape(),
    "codecarbon": Shape(),
    "dcgm": Shape(fixed="GPUId|TimeStampUs"),
    "extech": Shape(anywhere=r"(?<=[+,])"),
    "hardware_monitor": Shape(read=True),
    "hioki": Shape(fixed="STATUS.*", read=True),
    "joulescope": Shape(read=True),
    "jtop": Shape(read=True),
    "kineto": Shape(anywhere=r"(?<=[\[: ])"),
    "lvm": Shape("\t", read=True),
    "marks": Shape(),
    "memory_trace": Shape(),
    "monsoon": Shape(),
    "ncu_details": Shape(fixed="ID|Process ID|Context|Stream|Device|CC", read=True),
    "ncu_python": Shape(fixed="n"),
    "ncu_raw": Shape(fixed="ID|Process ID|Context|Stream|Device|CC", read=True),
    "ncu_session": Shape(anywhere="(?<=  )"),
    "ncu_source": Shape(fixed="Line No|Address|Source|Access Size", read=True),
    "ncu_summary": Shape(fixed="Process ID|Device|CC|Invocations"),
    "ncu_text": Shape(anywhere="(?<=  )", read=True),
    "nsys_json": Shape(anywhere="(?<=: )"),
    "ppk2": Shape(fixed="D0-D7|Bits|D[0-7]"),
    "proton": Shape(anywhere="(?<=: )"),
    "nsys_stats": Shape(fixed="CorrI[dD]|Pid|Tid|PID|TID", read=True),
    "nsys_text": Shape(anywhere="(?<=  )"),
    "nvidia_smi": Shape(fixed="index"),
    "nvidia_smi_dmon": Shape(anywhere="(?<=  )"),
    "nvidia_smi_q": Shape(anywhere="(?<=: )"),
    "nvml_energy": Shape(),
    "nvprof": Shape(fixed="Context|Stream|Correlation_ID", read=True),
    "nvprof_text": Shape(anywhere=r"(?:(?<=  )|(?<=\n)|(?<=\n ))", read=True),
    "otii": Shape(),
    "picolog": Shape(read=True),
    "ptdaemon": Shape(),
    "rocm_smi": Shape(fixed="timestamp|gpu"),
    "rocprof": Shape(fixed="Index|.*[-_][iI][dD]|pid|tid|sig|obj", read=True),
    "tegrastats": Shape(anywhere="(?<=[ @/])"),
    "timeseries": Shape(read=True),
    "tweet_a_watt": Shape(fixed="Date|time|sensornum"),
    "wattsup": Shape(),
    "yokogawa": Shape(read=True),
    "zeus": Shape(),
}
# Those that are not printed in C: their own signs, and what stands between their cells.
OWN = {
    "timeseries/letters_and_units": (Signs("", ","), ";"),
    "lvm/no_x_decimal_comma": (Signs("", ","), "\t"),
    "ncu_details/german": (Signs(".", ","), ","),
    "ncu_details/integers_in_dots": (Signs(".", ","), ","),
    "ncu_raw/german": (Signs(".", ","), ","),
    "ncu_raw/french": (Signs("\u202f", ","), ","),
    "ncu_raw/french_latin1": (Signs("\u00a0", ","), ","),
    "ncu_raw/swiss": (Signs("\u2019", "."), ","),
    "ncu_text/old_tables": (Signs(".", ","), " "),
    "nsys_stats/german": (Signs(".", ","), ","),
    "nvprof/german_quoted": (Signs(".", ","), ","),
    "nvprof_text/german": (Signs("", ","), ","),
    "picolog/zoned_german": (Signs("", ","), ";"),
    "timeseries/dotted_dates": (Signs("", ","), "\t"),
    "timeseries/eu_dates": (Signs(".", ","), ";"),
    "timeseries/units_row": (Signs("", "."), ";"),
    "dcgm/dmon": (Signs("", "."), " "),
    "wattsup/log": (Signs("", "."), " "),
}
# Refused or rejected in some locale although the format follows locales.
UNREAD = {
    "lvm/date_not_set",  # LabVIEW never groups seconds
    "ncu_raw/name_with_newline",  # only its first line is printed again
    "nsys_stats/beside_kernels",
    "nsys_stats/several_reports",  # the fixed columns of one report are taken for those of the next
    "nvprof/unified_memory_trace",  # a column of addresses, counts and sizes says nothing about signs
    "timeseries/epoch_ms",  # nobody groups an epoch
    "timeseries/windows_counters",  # Windows prints a point everywhere: nothing tells a grouped whole number
    "yokogawa/scpi_logger",  # commas and tabs between the cells: a decimal comma cannot be told
}
# Files that the printing here cannot follow.
NOT_PRINTED = {
    "lvm/no_leading_zero",  # numbers are looked for by the digit before the point
    "ncu_summary/broken_rows",  # its rows are shifted, so the columns that no locale changes are
    "ncu_text/raw_page",  # a longer number would move the columns of its table, and so it would in the next ones
    "ncu_text/summary_2021",
    "ncu_text/summary_per_gpu",
    "ncu_text/summary_per_nvtx_raw",
    "nvprof_text/one_blank",  # numbers are looked for behind two blanks
    "rocprof/counter_collection",  # a dispatch begins at its first row that can be read
    "rocprof/stats",  # several tables, whose fixed columns differ
}
LARGEST = 70_000  # longer files of a tool are left to the other tests
FILES = {
    f"{path.parent.name}/{path.name.split('.')[0]}": path
    for folder in SHAPES
    for path in sorted((FIXTURES / folder).iterdir())
    if f"{path.parent.name}/{path.name.split('.')[0]}" not in NOT_PRINTED
    if not path.name.startswith("bad_") and not path.name.endswith((".expected.json", ".error.txt"))
    if len(open_stream(path).read(LARGEST + 1)) <= LARGEST
}


def number_in(signs: Signs) -> str:
    groups = rf"[0-9]{{1,3}}(?:{re.escape(signs.thousands)}[0-9]{{3}})+(?![0-9])|" if signs.thousands else ""
    return rf"(?P<whole>{groups}[0-9]+)(?:{re.escape(signs.decimal)}(?P<fraction>[0-9]+))?"


def localized(match: re.Match[str], own: Signs, new: Signs) -> str:
    digits = match["whole"].replace(own.thousands, "") if own.thousands else match["whole"]
    whole = f"{int(digits):,}".replace(",", new.thousands) if digits[0] != "0" else digits
    return whole + (new.decimal + match["fraction"] if match["fraction"] else "")


def cells_of(line: str, sign: str) -> list[str]:
    """Split a line at ``sign`` outside quotes, the quotes and the spaces kept."""
    return re.findall(rf'(?:[^"{sign}]|"[^"]*"?)*(?:{sign}|$)', line)[:-1] or [""]


def in_cells(text: str, shape: Shape, own: Signs, new: Signs, quotes: bool) -> Iterator[str]:
    number = number_in(own)
    cell_of = re.compile(rf'(?P<open>\s*"?)(?P<cell>[-+<]?{number}[^"]*?)(?P<close>"?\s*{shape.sign}?)')
    is_number = re.compile(rf"[-+]?{number}(?:[eE][-+]?[0-9]+)?\s?[A-Za-z%/\u00b0]*(?: \(.*\))?").fullmatch
    header: list[str] = []
    for line in text.split("\n"):
        cells = cells_of(line, shape.sign)
        matches = [cell_of.fullmatch(cell) for cell in cells]
        found = [match if match and is_number(match["cell"]) else None for match in matches]
        named = [cell.strip(f'{shape.sign} "\r#\ufeff') for cell in cells]
        if any(re.fullmatch(shape.fixed, cell) for cell in named) and not any(found):
            header = named
        for place, match in enumerate(found):
            fixed = place < len(header) and re.fullmatch(shape.fixed, header[place])
            if match and not fixed:
                cell = re.sub(
                    rf"(?<![0-9A-Za-z])(?<![eE][-+]){number}", lambda m: localized(m, own, new), match["cell"]
                )
                quote = '"' if quotes and shape.sign in cell and '"' not in match["open"] else ""
                cells[place] = f"{match['open']}{quote}{cell}{quote}{match['close']}"
        yield "".join(cells)


def printed(name: str, text: str, new: Signs, quotes: bool) -> str:
    """Return a file as its tool would print it; ``quotes``: by a tool that knows that a number may hold a comma."""
    shape = SHAPES[name.split("/")[0]]
    own, sign = OWN.get(name, (Signs(",", ".") if name.startswith("ncu") else LOCALES["C"], shape.sign))
    if shape.anywhere:
        number = re.compile(rf"{shape.anywhere}{number_in(own)}(?![-0-9:./][0-9])")
        return number.sub(lambda match: localized(match, own, new), text)
    if name.startswith("lvm") and quotes:
        text = text.replace(f"Decimal_Separator\t{own.decimal}", f"Decimal_Separator\t{new.decimal}")
        text = re.sub(r"(:[0-9]{2})[.,]([0-9])", rf"\1{new.decimal}\2", text)
    return "\n".join(in_cells(text, shape._replace(sign=sign), own, new, quotes))


def losses(content):
    """What tells that values are missing: rejects, a message, values that are null with a reason."""
    values = (row for name in ("metrics", "samples") for row in content.rows(name))
    return content.rejected, content.message, sum(row["reason"] is not None for row in values)


@pytest.mark.parametrize("name", FILES)
def test_the_same_values_or_a_refusal(name, read_all, values_of):
    data, shape = open_stream(FILES[name]).read(), SHAPES[name.split("/")[0]]
    text, reader = head_text(data), name.split("/")[0].replace("_", "-")
    whole = read_all(text.encode(), reader)
    truth = values_of(whole)

    @cache
    def read(printed_text):  # several locales print a file without large numbers alike
        try:
            content = read_all(printed_text.encode(), reader)
        except InputError:
            return None, set()
        return content, values_of(content)

    for locale, new in LOCALES.items():
        forms = {printed(name, text, new, quotes): quotes for quotes in (False, True)}
        for other, quotes in forms.items():
            content, values = read(other)
            assert values <= truth, (locale, quotes, values - truth)
            assert values == truth or content is None or losses(content) != losses(whole), (locale, quotes)
            if shape.read and quotes and name not in UNREAD:
                assert values == truth, (locale, "is not read")


@pytest.mark.parametrize("folder", SHAPES)
def test_the_locales_change_a_file_of_every_format(folder):
    names = [name for name in FILES if name.startswith(f"{folder}/")]
    texts = {name: head_text(open_stream(FILES[name]).read()) for name in names}
    assert any(printed(name, text, LOCALES["de"], True) != text for name, text in texts.items())
