"""Hundreds of kernels that change together are one change in every form of a report."""

import json

import numpy as np

from profsvc import store
from profsvc.reports.nightly import formats as forms
from tests.benchmarks.nightly import put_many
from tests.inputs import nights

QUIET, SINCE = 12, 4


def test_hundreds_of_kernels_that_change_together_are_one_change(engine):
    kernels = 257  # more than a byte tells apart
    rng = np.random.default_rng(kernels)
    level = rng.uniform(1e5, 1e6, kernels)
    for night in range(QUIET + SINCE):
        noise = 1 + 0.003 * rng.uniform(-1, 1, kernels)
        put_many(engine, night, level * noise * (1.06 if night >= QUIET else 1.0))
    made = nights.report(engine, QUIET + SINCE - 1)
    rows = store.select(engine, "v1_findings")
    assert len(made["findings"]) == len(rows) == kernels
    assert {row["run_id"] for row in rows} == {QUIET + 1}
    (event,) = made["events"]
    assert (event["kind"], len(event["members"]), event["of"]) == ("together", kernels, kernels)
    said = f"{kernels} of {kernels} kernels slower by 5."
    assert event["text"].startswith(said)
    assert made["one_line"].startswith("1 change of all kernels in 16 runs; ")
    for form in ("text", "md", "html", "github"):
        assert said in forms.in_form(made, form)
    assert len(json.loads(forms.in_form(made, "json"))["findings"]) == kernels
    sarif = json.loads(forms.in_form(made, "sarif"))["runs"][0]["results"]
    assert len(sarif) == kernels
    assert forms.in_form(made, "junit").count("<failure") <= 1
