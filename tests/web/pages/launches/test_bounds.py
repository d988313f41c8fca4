"""Pages say of a potential whether it is a bound."""

import re

import pytest
from sqlalchemy import text

from profsvc import store, views
from profsvc.formulas.numerics.flags import Flag
from profsvc.reports.text.cells import NOT_ALL
from profsvc.reports.text.comparison import two_runs as comparison
from profsvc.reports.text.runs import run as text_of
from profsvc.store.connection.transactions import writing
from profsvc.views.comparison import two_runs as compare
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
        with writing(engine) as connection:  # of what is not counted there is no number: as if a part of it were
            connection.execute(text("UPDATE potential SET speedup_ceiling = 9 WHERE speedup_ceiling IS NULL"))
            assert connection.execute(text("SELECT count(*) FROM potential WHERE speedup IS NULL")).scalar() == (
                is_bound * (len(flags) + 1)
            )
            some = "speedup = 2, duration_ns = coalesce(duration_ns, 1e6), ideal_ns = 5e5"
            some += f", flags = {int(Flag.LOWER_BOUND)}"
            some = f"UPDATE potential SET {some} WHERE speedup IS NULL"
            connection.execute(text(some))
        compared, bounds = len(store.kernels_of_run(engine, 1)), len(flags) + 1
        for ceiling in (0, 1):
            with writing(engine) as connection:
                connection.execute(text(f"UPDATE potential SET ceiling_flags = {ceiling * Flag.LOWER_BOUND}"))
            pages = {"/runs/1": bounds * (is_bound + ceiling), f"/runs/1/launches/{launch}": is_bound + ceiling,
                     "/": is_bound, "/compare/1...1": is_bound * compared}  # fmt: skip
            for path, signed in pages.items():
                answer = service.http.get(service.url + path, headers={"accept": "text/html"}, follow_redirects=True)
                assert len(SIGNED.findall(answer.text)) == signed, path
            shown = text_of.run(views.run(engine, 1))
            assert ("ceiling ≥" in shown) == bool(ceiling)
            assert (NOT_ALL in shown) == bool(is_bound or ceiling)
        view = compare.compare(engine, 1, 1)
        shown = comparison.comparison(view)
        assert (("≥ " in shown or "≤ " in shown or "~ " in shown) and NOT_ALL in shown) == bool(is_bound)


def test_the_page_of_a_launch_has_the_range_of_its_potential(site, engine):
    with running(site()) as service:
        body = (ROOT / "fixtures" / "ncu_raw" / "h200_three_launches.csv.gz").read_bytes()
        assert service.http.post(f"{service.url}/v1/uploads", params={"run": "r"}, content=body).status_code == 201
        launch = store.select(engine, "v1_launches", run_id=1)[0]["launch_id"]
        for low, high, told in (("1.5", "2.5", True), ("NULL", "NULL", False), ("1", "1.001", False)):
            with writing(engine) as connection:
                connection.execute(text(f"UPDATE potential SET speedup_low = {low}, speedup_high = {high}"))
            answer = service.http.get(f"{service.url}/runs/1/launches/{launch}", headers={"accept": "text/html"})
            assert answer.status_code == 200
            assert ("eight of ten mended kernels" in answer.text) == told
            assert ("2.50\u00d7" in answer.text) == told
