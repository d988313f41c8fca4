"""Pages say of a potential whether it is a bound."""

import re

import pytest

from profsvc import store
from tests.conftest import ROOT
from tests.web.conftest import running

SIGNED = re.compile("[≥≤~] <a")


@pytest.mark.parametrize(
    ("name", "is_bound"), [("ncu_raw/h200_three_launches", 0), ("ncu_details/h200_three_launches_min", 1)]
)
def test_a_potential_that_is_a_bound_has_its_sign_on_every_page(site, engine, name, is_bound):
    with running(site()) as service:
        body = (ROOT / "fixtures" / f"{name}.csv.gz").read_bytes()
        assert service.http.post(f"{service.url}/v1/uploads", params={"run": "r"}, content=body).status_code == 201
        flags = [row["flags"] or "" for row in store.select(engine, "v1_potential", run_id=1) if row["launch_id"]]
        assert {"_BOUND" in one for one in flags} == {bool(is_bound)}
        launch = store.select(engine, "v1_launches", run_id=1)[0]["launch_id"]
        for path, least in (("/runs/1", 1 + len(flags)), (f"/runs/1/launches/{launch}", 1)):
            answer = service.http.get(service.url + path, headers={"accept": "text/html"})
            assert len(SIGNED.findall(answer.text)) == is_bound * least, path
