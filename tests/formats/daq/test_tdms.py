"""TDMS files beyond the fixtures: byte orders, raw DAQmx values, sizes, damage, and a missing npTDMS."""

import io
import struct
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc import formats
from profsvc.errors import BrokenInputError, InputError
from profsvc.formats.daq import tdms_file

FIXTURES = Path(__file__).parents[3] / "fixtures" / "tdms"
METADATA, NEW, RAW, INTERLEAVED, BIG, DAQMX = 2, 4, 8, 32, 64, 128
I16, F64, TEXT, RAW_DAQMX = 2, 10, 0x20, 0xFFFFFFFF


def text(value: str, order: str) -> bytes:
    return struct.pack(f"{order}L", len(value)) + value.encode()


def described(path: str, index: bytes, order: str = "<", **properties: object) -> bytes:
    """An object with properties that are texts, doubles or whole numbers."""
    out = text(path, order) + index + struct.pack(f"{order}L", len(properties))
    for name, value in properties.items():
        out += text(name.replace("_at_", "[0]_"), order)
        if isinstance(value, str):
            out += struct.pack(f"{order}L", TEXT) + text(value, order)
        elif isinstance(value, int):
            out += struct.pack(f"{order}Ll", 3, value)
        else:
            out += struct.pack(f"{order}Ld", F64, value)
    return out


def plain(kind: int, count: int, order: str = "<") -> bytes:
    return struct.pack(f"{order}LLLQ", 20, kind, 1, count)


def segment(flags: int, objects: list[bytes], data: bytes, length: int | None = None) -> bytes:
    order = ">" if flags & BIG else "<"
    metadata = struct.pack(f"{order}L", len(objects)) + b"".join(objects)
    size = len(metadata) + len(data) if length is None else length
    return b"TDSm" + struct.pack("<l", flags) + struct.pack(f"{order}lQQ", 4713, size, len(metadata)) + metadata + data


def values(content) -> dict[str, list[float]]:
    named = content.samples.merge(content.sensors[["sensor_index", "name"]], on="sensor_index")
    return {name: group["value"].tolist() for name, group in named.groupby("name")}


def test_interleaved_values_in_the_other_byte_order(read_all):
    objects = [
        described("/'G'/'a'", plain(F64, 1, ">"), ">", unit_string="W", wf_increment=0.5),
        described("/'G'/'b'", plain(I16, 1, ">"), ">"),
    ]
    data = b"".join(struct.pack(">dh", n + 0.25, -n) for n in range(3))
    content = read_all(segment(METADATA | NEW | RAW | INTERLEAVED | BIG, objects, data))
    assert values(content) == {"a": [0.25, 1.25, 2.25], "b": [0, -1, -2]}
    assert content.samples.loc[content.samples["sensor_index"] == 0, "elapsed_ns"].tolist() == [0, 5 * 10**8, 10**9]


def test_raw_values_of_daqmx_are_scaled(read_all):
    # One scaler, 16 bits wide, at byte 0 or 2 of a row of 4 bytes.
    index = [struct.pack("<LLLQL5LLL", 0x1269, RAW_DAQMX, 1, 3, 1, 3, 0, at, 0, 0, 1, 4) for at in (0, 2)]
    scales = {"NI_Scaling_Status": "unscaled", "NI_Number_Of_Scales": 2, "NI_Scale[1]_Scale_Type": "Linear"}
    scales |= {"NI_Scale[1]_Linear_Slope": 0.5, "NI_Scale[1]_Linear_Y_Intercept": 20.0}
    scales |= {"NI_Scale[1]_Linear_Input_Source": 0, "unit_string": "Deg C"}
    objects = [described(f"/'G'/'ai{n}'", one, **scales) for n, one in enumerate(index)]
    data = struct.pack("<6h", 1, -1, 2, -2, 3, -3)
    content = read_all(segment(METADATA | NEW | RAW | DAQMX, objects, data))
    assert values(content) == {"ai0": [20.5, 21.0, 21.5], "ai1": [19.5, 19.0, 18.5]}
    assert content.sensors["unit"].tolist() == ["degC", "degC"]
    assert (content.stored, content.skipped, content.rejected) == (6, 0, 0)


@pytest.mark.parametrize("size", [8, 24, 100])
def test_blocks_of_any_size_give_the_same(size, read_all, monkeypatch):
    objects = [described(f"/'G'/'{name}'", plain(F64, count)) for name, count in (("a", 7), ("b", 3))]
    data = struct.pack("<20d", *range(20)) + struct.pack("<4d", *range(4))  # two chunks and a part of one
    whole = segment(METADATA | NEW | RAW, objects, data, length=2**64 - 1)
    expected = values(read_all(whole))
    assert expected == {"a": [*range(7), *range(10, 17), *range(4)], "b": [*range(7, 10), *range(17, 20)]}
    monkeypatch.setattr(tdms_file, "BLOCK_BYTES", size)
    assert values(read_all(whole)) == expected


def test_memory_does_not_grow_with_a_channel():
    count = 3_000_000
    data = segment(METADATA | NEW | RAW, [described("/'G'/'a'", plain(F64, count))], bytes(8 * count))
    tracemalloc.start()
    try:
        found = sum(len(batch.tables.get("samples", ())) for batch in formats.read(io.BytesIO(data))[1])
        assert tracemalloc.get_traced_memory()[1] < 60 << 20
    finally:
        tracemalloc.stop()
    assert found == count


def test_a_missing_package_is_a_refusal_with_the_command(read_all, monkeypatch):
    monkeypatch.setitem(sys.modules, "nptdms.log", None)
    with pytest.raises(InputError, match=r"needs npTDMS; install it with: pip install 'profsvc\[tdms\]'$"):
        read_all(FIXTURES / "elapsed.tdms")


def test_too_many_scalings_and_segments_are_refused(read_all, monkeypatch):
    one = described("/'G'/'a'", plain(F64, 1), NI_Number_Of_Scales=2**31 - 1)
    with pytest.raises(BrokenInputError, match="announces 2147483647 scalings"):
        read_all(segment(METADATA | NEW | RAW, [one], bytes(8)))
    monkeypatch.setattr(tdms_file, "MAX_OBJECT_VISITS", 100)
    with pytest.raises(BrokenInputError, match="too many small segments"):
        read_all(segment(METADATA | NEW | RAW, [described("/'G'/'a'", plain(F64, 1))], bytes(8)) * 200)


def attempt(data: bytes) -> None:
    try:
        batches = list(formats.read(io.BytesIO(data), "tdms")[1])
    except InputError:
        return
    stored = sum(batch.lines_stored for batch in batches)
    assert stored == sum(len(batch.tables.get("samples", ())) for batch in batches)
    assert stored <= len(data)


@pytest.mark.parametrize("name", ["waveforms", "timestamps", "elapsed"])
def test_cut_and_damaged_files(name):
    data = (FIXTURES / f"{name}.tdms").read_bytes()
    for place in range(len(data)):
        attempt(data[:place])
        byte = (0, 0xFF, 0x7F)[place % 3]
        attempt(data[:place] + bytes([byte]) + data[place + 1 :])


@given(st.lists(st.tuples(st.integers(0, 875), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4))
def test_any_damage(changes):
    data = bytearray((FIXTURES / "waveforms.tdms").read_bytes())
    for place, part in changes:
        data[place : place + len(part)] = part
    attempt(bytes(data))


@given(st.binary(max_size=200))
def test_any_bytes(data):
    attempt(data)
    attempt(b"TDSm" + data)


def stamps(*seconds: int) -> bytes:
    return b"".join(struct.pack("<Qq", 1 << 63, second + 2_082_844_800) for second in seconds)


def test_timestamps_win_over_an_increment_without_a_start(read_all):
    objects = [
        described("/'G'/'when'", plain(0x44, 2)),
        described("/'G'/'a'", plain(F64, 2), wf_increment=1.0, wf_start_offset=0.0),
    ]
    content = read_all(segment(METADATA | NEW | RAW, objects, stamps(100, 107) + struct.pack("<2d", 1, 2)))
    assert content.samples["time_ns"].tolist() == [100_500_000_000, 107_500_000_000]
    assert (content.stored, content.skipped) == (2, 2)


def test_nobody_chooses_between_two_channels_of_timestamps(read_all):
    objects = [described(f"/'G'/'when{n}'", plain(0x44, 1)) for n in (1, 2)] + [described("/'G'/'a'", plain(F64, 1))]
    content = read_all(segment(METADATA | NEW | RAW, objects, stamps(100, 107) + struct.pack("<d", 1)))
    assert content.samples[["time_ns", "elapsed_ns"]].isna().all(axis=None)
    assert "no clock" in content.sensors["quality"].tolist()[0]


def test_complex_numbers_are_skipped_and_counted(read_all):
    objects = [described("/'G'/'z'", plain(0x10000D, 2)), described("/'G'/'a'", plain(F64, 1))]
    content = read_all(segment(METADATA | NEW | RAW, objects, bytes(32) + struct.pack("<d", 5)))
    assert values(content) == {"a": [5]}
    assert (content.stored, content.skipped) == (1, 2)
    assert content.facts["columns_left_out"] == "G/z"


@pytest.mark.parametrize("unit", ["Deg C", "deg C", "°C", "degC", "DegC", "C"])
def test_units_of_ni(unit, read_all):
    body = text("/'G'/'a'", "<") + plain(F64, 1) + struct.pack("<L", 1) + text("unit_string", "<")
    raw = unit.encode()
    body += struct.pack("<LL", TEXT, len(raw)) + raw
    content = read_all(segment(METADATA | NEW | RAW, [body], struct.pack("<d", 21.5)))
    assert content.sensors[["quantity", "unit"]].to_numpy().tolist() == [["temperature", "degC"]]


def test_segments_of_a_reading_each_are_read_as_one_of_many(read_all):
    def part(n: int, times: int, flags: int = METADATA | RAW) -> bytes:
        objects = [described("/'G'/'when'", plain(0x44, times)), described("/'G'/'a'", plain(F64, 1))]
        return segment(flags, objects, stamps(*[n] * times) + struct.pack("<d", n))

    content = read_all(b"".join(part(n, 1, METADATA | RAW | NEW) for n in range(1, 6)))
    assert values(content) == {"a": [1, 2, 3, 4, 5]}
    assert content.samples["time_ns"].tolist() == [n * 10**9 + 5 * 10**8 for n in range(1, 6)]
    assert (content.stored, content.skipped) == (5, 5)
    # Two times and a value, then none and a value: together as many, but whose are they?
    content = read_all(part(1, 2, METADATA | RAW | NEW) + part(2, 0, METADATA | RAW | NEW) + part(3, 1))
    assert values(content) == {"a": [1, 2, 3]}
    assert content.samples["time_ns"].astype(object).where(content.samples["time_ns"].notna(), None).tolist() == [
        None,
        None,
        3_500_000_000,
    ]
