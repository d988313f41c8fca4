"""What else changed with a finding, on its page, in its report and over the API."""

import re

import pytest
from click.testing import CliRunner

from profsvc import store
from profsvc.cli.application import app
from tests.pipeline.nightly.test_evidence import QUIET, put
from tests.web.conftest import running
from tests.web.pages.nightly.test_nights import page, site

TAGS = ({"compiler": "nvcc 12.8"}, {"compiler": "nvcc <13>"})


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A store in which a kernel slows down with more registers, another compiler and a new kernel beside it."""
    engine = store.open_store(str(tmp_path_factory.mktemp("evidence") / "store.sqlite"), pooled=True)
    for night in range(QUIET):
        put(engine, night, {}, tags=TAGS[0])
    slow = {"ns": 112_000, "registers": 72}
    for night in range(QUIET, QUIET + 3):
        made = put(engine, night, slow, {"kernel": "gemm(float *)"}, tags=TAGS[1])
    numbers = {row["quantity"]: row["finding_id"] for row in made["findings"]}
    yield engine, numbers["duration"], made["report_id"]
    engine.dispose()


def test_the_page_of_a_finding_lists_what_else_changed(told):
    engine, number, report = told
    with running(site(engine)) as service:
        shown = page(service, f"/findings/{number}")
        assert "What else changed" in shown
        assert "registers 40 to 72" in shown
        assert "compiler nvcc 12.8 to nvcc &lt;13&gt;" in shown
        assert "new kernel gemm" in shown
        assert "registers 40 to 72" in page(service, f"/reports/{report}")
        rows = service.ok("/v1/finding_differences", finding_id=number)["rows"]
        assert [row["fact"] for row in rows] == ["compiler", "registers_per_thread", "appeared"]


def test_findings_show_says_what_else_changed(told):
    asked = ["--store", str(told[0].url.database), "findings", "show", str(told[1])]
    shown = CliRunner().invoke(app, asked, prog_name="profsvc")
    assert shown.exit_code == 0
    assert "changed with it: compiler nvcc 12.8 to nvcc <13>, registers 40 to 72" in shown.stderr


def test_the_page_of_a_finding_has_units_and_no_empty_columns(told):
    engine, number, _ = told
    with running(site(engine)) as service:
        shown = page(service, f"/findings/{number}")
    noise = re.search(r"Run-to-run noise .1 sigma.</dt><dd>(?:<[^>]+>)?([^<]+)", shown)
    assert noise
    assert noise[1].endswith("s")
    points = re.search(r"<caption[^>]*>Values by run.*?</table>", shown, re.DOTALL)
    assert points
    assert "Value" in points[0]
    assert "Uncorrected" not in points[0]  # a duration has no temperature to be corrected to
