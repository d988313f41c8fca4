"""Public exports that nobody here wrote, and whole captures of one GPU; both stay outside the repository."""

from decimal import Decimal, InvalidOperation
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[4] / "shared"
CORPUS = SHARED / "corpus" / "2_ncu"
CAPTURES = SHARED / "captures" / "h200"
CODE_GANDEE = "CodeGandee__llm-perf-opt__ncu-v2_kernel_"
MEINIE = "meinie0826__Roofline-Analysis__flashinfer_paged_decode__"

# file: reader, launches, sum of the durations in ns, metric rows, rules, lines skipped
ORACLES = {
    f"{CODE_GANDEE}0001_ncu.details.csv": ("ncu-details", 1, 6750.0, 44, 4, 1),
    f"{CODE_GANDEE}0001_ncu.metrics.csv": ("ncu-details", 1, 6750.0, 11, 4, 1),
    f"{CODE_GANDEE}0001_ncu.section_SpeedOfLight.csv": ("ncu-details", 1, 6750.0, 10, 1, 1),
    f"{CODE_GANDEE}0001_ncu.section_SpeedOfLight_RooflineChart.csv": ("ncu-details", 1, 0.0, 22, 1, 1),
    f"{CODE_GANDEE}0003_ncu.details.csv": ("ncu-details", 1, 23420.0, 44, 4, 1),
    "brycelelbach__nsightful__copy_blocked.csv": ("ncu-details", 1, 21058944.0, 72, 11, 1),
    f"{MEINIE}gqa_bf16_b128_ctx2k_p64.ncu.csv": ("ncu-raw", 64, 40292608.0, None, 0, 4),
    f"{MEINIE}gqa_bf16_b1_ctx4k_p64.ncu.csv": ("ncu-raw", 16, 266496.0, None, 0, 4),
    f"{MEINIE}gqa_fp8_b64_ctx4k_p64.ncu.csv": ("ncu-text", 0, 0.0, 0, 0, 35),
    "yqg9651__cuda_test__nvls_8c_all_reduce_profiler_range.txt": ("ncu-text", 2, 0.0, 20, 0, 42),
}
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the public exports are not at {CORPUS}")
needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason=f"the captures are not at {CAPTURES}")


@needs_corpus
@pytest.mark.parametrize("name", ORACLES)
def test_public_export(name, read_all, count_lines):
    reader, launches, duration, metrics, rules, skipped = ORACLES[name]
    content = read_all(CORPUS / name)
    assert content.reader == reader
    assert len(content.launches) == launches
    assert content.launches["duration_ns"].sum() == duration
    assert metrics in (None, len(content.metrics))
    assert len(content.rules) == rules
    assert (content.skipped, content.rejected) == (skipped, 0)
    assert content.stored + content.skipped == count_lines(CORPUS / name)


@needs_corpus
def test_every_public_export_has_an_oracle():
    assert {path.name for path in CORPUS.iterdir()} == set(ORACLES)


@needs_corpus
def test_values_of_public_exports(read_all):
    details = read_all(CORPUS / f"{CODE_GANDEE}0001_ncu.details.csv").metrics
    values = details.groupby("metric")["value"].agg(set)
    assert values["Elapsed Cycles"] == {13485}
    assert values["dram__bytes_read.sum"] == {2.33e6}
    assert (details["reason"] == "n/a").sum() == 3
    roofline = read_all(CORPUS / f"{CODE_GANDEE}0001_ncu.section_SpeedOfLight_RooflineChart.csv").metrics
    values = roofline.groupby("metric")["value"].first()
    assert values["SM Frequency"] == pytest.approx(2.15e9)
    assert values["DRAM Frequency"] == pytest.approx(13.72e9)
    blocked = read_all(CORPUS / "brycelelbach__nsightful__copy_blocked.csv")
    assert blocked.metrics["section"].nunique() + blocked.rules["section"].nunique() == 19
    rule = blocked.rules.iloc[-1]
    assert (rule["rule"], rule["kind"]) == ("UncoalescedGlobalAccess", "global")
    assert rule["estimated_saving_fraction"] == pytest.approx(0.7414)
    assert rule["estimated_speedup"] == pytest.approx(1 / (1 - 0.7414))
    kernels = read_all(CORPUS / f"{MEINIE}gqa_bf16_b1_ctx4k_p64.ncu.csv").launches["kernel"].value_counts()
    assert sorted(kernels) == [8, 8]
    failed = read_all(CORPUS / f"{MEINIE}gqa_fp8_b64_ctx4k_p64.ncu.csv")
    assert "==ERROR== The application returned an error code (1)." in failed.message


@needs_captures
def test_the_pages_of_one_report_hold_the_same_launches(read_all):
    names = ("ncu_raw", "ncu_raw_base", "ncu_details", "ncu_details_min")
    contents = [read_all(CAPTURES / f"{name}.csv.gz") for name in names]
    first = contents[0].launches
    assert len(first) == 34
    same = ["source_id", "process_id", "kernel", "device_index", "grid_x", "grid_y", "block_x", "block_y", "stream"]
    for content in contents:
        assert content.rejected == 0
        assert content.launches[same].equals(first[same])
        # The details page prints 5 digits.
        assert content.launches["duration_ns"].tolist() == pytest.approx(first["duration_ns"].tolist(), rel=5e-3)
    assert contents[1].launches["duration_ns"].tolist() == first["duration_ns"].tolist()
    assert len(contents[2].rules) == len(contents[3].rules) == 297


def half_of_last_digit(raw, factor):
    number = raw.split(" (")[0].replace(",", "")
    try:
        return float(Decimal(5).scaleb(Decimal(number).as_tuple().exponent - 1)) * factor
    except InvalidOperation:
        return 0.0


@needs_captures
def test_scaled_and_base_units_give_the_same_values(read_all):
    scaled, base = (read_all(CAPTURES / f"{name}.csv.gz").metrics for name in ("ncu_raw", "ncu_raw_base"))
    assert scaled["metric"].equals(base["metric"])
    assert scaled["si_unit"].fillna("").equals(base["si_unit"].fillna(""))
    assert scaled["reason"].fillna("").equals(base["reason"].fillna(""))
    factors = []
    for table in (scaled, base):
        printed = table["raw_text"].str.replace(",", "").where(table["value"].notna(), "nan").astype(float)
        factors.append((table["value"] / printed).where(printed != 0, 1.0))
    wrong = [
        (metric, raw_scaled, raw_base)
        for metric, raw_scaled, raw_base, value, wanted, factor_scaled, factor_base in zip(
            scaled["metric"],
            scaled["raw_text"],
            base["raw_text"],
            scaled["value"],
            base["value"],
            *factors,
            strict=True,
        )
        if value == value
        and abs(value - wanted)
        > max(
            1e-3 * abs(wanted),
            1.001 * (half_of_last_digit(raw_scaled, factor_scaled) + half_of_last_digit(raw_base, factor_base)),
        )
    ]
    # The tool divides this slope by 1000 where the step from %/byte to %/Kbyte multiplies it.
    assert {metric for metric, *_ in wrong} == {"derived__pct_occupancy_per_shared_mem_size"}, wrong[:10]


@needs_captures
def test_live_output(read_all):
    content = read_all(CAPTURES / "ncu_live_stdout.csv")
    assert len(content.launches) == 3
    assert (content.stored, content.skipped, content.rejected) == (3, 9, 0)


@needs_captures
def test_the_session_says_what_the_raw_page_says_of_the_device(read_all):
    session, raw = read_all(CAPTURES / "ncu_session.csv"), read_all(CAPTURES / "ncu_raw_base.csv.gz")
    assert (session.reader, session.stored, session.skipped, session.rejected) == ("ncu-session", 21, 11, 0)
    first = raw.metrics[raw.metrics["launch_index"] == 0].set_index("metric")["raw_text"]
    attributes = session.metrics.set_index("metric")["raw_text"]
    known = [name for name in attributes.index if name in first.index]
    assert "device__attribute_multiprocessor_count" in known
    assert attributes[known].tolist() == first[known].str.replace(",", "").tolist()
