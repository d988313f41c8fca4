"""Logs of sensors that were cut, changed by a locale, or are none: an `InputError`, or the values that are true."""

import io
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profsvc import formats
from profsvc.errors import InputError
from profsvc.formats import dcgm, nvidia_smi, nvidia_smi_dmon, nvidia_smi_q, nvml_energy, rocm_smi, tegrastats, zeus
from profsvc.tables import check

FIXTURES = Path(__file__).parents[2] / "fixtures"
MODULES = {
    "nvidia_smi/units.csv": nvidia_smi,
    "nvidia_smi/bursts.csv": nvidia_smi,
    "nvidia_smi/no_header.csv": nvidia_smi,
    "nvidia_smi_dmon/date_time.txt": nvidia_smi_dmon,
    "nvidia_smi_q/cut.txt": nvidia_smi_q,
    "dcgm/long.csv": dcgm,
    "dcgm/dmon.txt": dcgm,
    "tegrastats/tx2.txt": tegrastats,
    "zeus/windows.csv": zeus,
    "zeus/power.csv": zeus,
    "nvml_energy/plain.csv": nvml_energy,
    "rocm_smi/rocm.csv": rocm_smi,
}
PIECES = [line for name in MODULES for line in (FIXTURES / name).read_bytes().split(b"\n")[:3]]
PIECES += [b",", b"\xff\xfe", b"0,0", b"2026/11/20 13:16:16.215, ", b"#", b"9" * 30, b"\x1f\x8b", b" : ", b"nan", b'"']


def values(batches):
    """Return every value by sensor, GPU and line."""
    names = {}
    for batch in batches:
        for name, table in batch.tables.items():
            check(name, table)
        for row in batch.tables["sensors"].itertuples() if "sensors" in batch.tables else ():
            names[row.sensor_index] = (row.name, row.gpu_index)
    found = {}
    for batch in batches:
        if "samples" in batch.tables:
            for row in batch.tables["samples"].itertuples():
                found[(*map(str, names[row.sensor_index]), row.line)] = (row.value, str(row.local_ns), str(row.time_ns))
        for row in batch.tables["metrics"].itertuples() if "metrics" in batch.tables else ():
            found[str(row.section), row.metric, row.line] = (row.value, row.raw_text, "")
    return found


def attempt(module, data):
    try:
        return list(module.read(formats.open_stream(io.BytesIO(data))))
    except InputError:
        return None


def same(one, other):
    return one == other or (one[0] != one[0] and other[0] != other[0] and one[1:] == other[1:])


@pytest.mark.parametrize("name", MODULES)
def test_cut_at_every_byte(name, count_lines):
    data = (FIXTURES / name).read_bytes()
    module = MODULES[name]
    whole = values(attempt(module, data))
    read = 0
    for size in range(len(data)):
        batches = attempt(module, data[:size])
        if batches is None:
            continue
        read += 1
        lines = count_lines(data[:size])
        assert sum(b.lines_stored + b.lines_skipped + b.lines_rejected for b in batches) == lines, size
        seen = values(batches)
        # Where bursts cannot be told yet, the rows are of no GPU that is known.
        if name != "nvidia_smi/bursts.csv" or ("power.draw", "2", 10) in seen:
            wrong = {key: (value, whole.get(key)) for key, value in seen.items() if not same(value, whole.get(key))}
            assert not wrong, (size, wrong)
    assert read > len(data) // 3


LOCALES = {"C": ("", "."), "en": (",", "."), "de": (".", ","), "fr": ("\u202f", ","), "ch": ("\u2019", ".")}
_NUMBER = re.compile(r"(?<![\w.:/])([0-9]+)(?:\.([0-9]+))?(?![\w.:/-])")


def localized(text, thousands, decimal):
    def one(match):
        whole = match[1] if len(match[1]) > 12 else f"{int(match[1]):,}".replace(",", thousands)
        return whole + (decimal + match[2] if match[2] else "")

    return _NUMBER.sub(one, text)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("name", [name for name in MODULES if "q/" not in name])
def test_numbers_of_another_locale_are_refused_or_the_same(name, locale):
    text = (FIXTURES / name).read_text(encoding="utf-8")
    begin = 0 if "no_header" in name else text.index("\n") + 1
    head, body = text[:begin], text[begin:]
    whole = values(attempt(MODULES[name], text.encode()))
    batches = attempt(MODULES[name], (head + localized(body, *LOCALES[locale])).encode())
    assert locale != "C" or batches is not None
    for key, value in values(batches or []).items():
        if value[0] == value[0]:
            assert value[0] == whole[key][0], (key, value, whole[key])


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=300), name=st.sampled_from(list(MODULES)))
def test_any_bytes(data, name):
    attempt(MODULES[name], data)


@settings(max_examples=500, deadline=None)
@given(
    parts=st.lists(st.sampled_from(PIECES) | st.binary(max_size=6), max_size=12),
    glue=st.sampled_from([b"\n", b"", b"\r\n"]),
    name=st.sampled_from(list(MODULES)),
)
def test_shuffled_pieces_of_logs(parts, glue, name):
    data = glue.join(parts)
    batches = attempt(MODULES[name], data)
    MODULES[name].sniff(data)
    if batches and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"\x28\xb5")):
        values(batches)
        lines = data.count(b"\n") + (not data.endswith(b"\n") and data not in (b"", b"\xef\xbb\xbf"))
        assert sum(b.lines_stored + b.lines_skipped + b.lines_rejected for b in batches) == lines


@pytest.mark.parametrize("name", MODULES)
def test_damaged_bytes(name):
    data = (FIXTURES / name).read_bytes()
    for place in range(0, len(data), 17):
        for byte in (b'"', b"\n", b",", b"\xff", b"9"):
            attempt(MODULES[name], data[:place] + byte + data[place + 1 :])
