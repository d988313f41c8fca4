"""Kernels that an export gives means of have a page like a launch, and every other number leads somewhere."""

import re

from profsvc import store
from tests.store.queries.kernels.test_means import METRICS, TRACE, stored
from tests.web.conftest import running

HTML = {"accept": "text/html"}


def test_a_kernel_known_by_means_is_opened(site, engine):
    run_id = stored(engine, METRICS, TRACE)
    with running(site()) as service:

        def page(path, status=200):
            answer = service.http.get(service.url + path, headers=HTML)
            assert answer.status_code == status, answer.text
            return answer.text

        of_run = page(f"/runs/{run_id}")
        assert "Kernel averages" in of_run
        assert f'href="/runs/{run_id}/means/scale%28float%2A%29"' in of_run
        opened = page(f"/runs/{run_id}/means/scale(float*)")
        assert "scale(float*)" in opened
        assert "30 µs" in opened
        assert "no averages of a kernel" in page(f"/runs/{run_id}/means/other(int)", 404)


def test_pages_of_a_project_show_nothing_of_others(site, engine, profile):
    tokens = [store.create_token(engine, name, ["read", "upload"], project=name) for name in ("lab", "secret")]
    with running(site(is_public=True)) as service:
        for number, token in enumerate(tokens):
            body = profile.replace(b"saxpy", b"kernel%d" % number)
            head = {"authorization": f"Bearer {token}"}
            params = {"run": ("mine", "veiled")[number]}
            assert (
                service.http.post(f"{service.url}/v1/uploads", params=params, content=body, headers=head).status_code
                == 201
            )
        lab = {**HTML, "authorization": f"Bearer {tokens[0]}"}
        found = service.http.get(service.url + "/", headers=lab).text
        assert "mine" in found
        assert "veiled" not in found
        launch = store.select(engine, "v1_launches", run_id=2)[0]["launch_id"]
        for path in (
            *("/runs/2", "/runs/veiled", "/runs/2/rejects", "/runs/2/kernels/2"),
            *(f"/runs/{run}/launches/{launch}" for run in (1, 2)),
            f"/explain/duration_ns?run=2&launch={launch}",
        ):
            answer = service.http.get(service.url + path, headers=lab)
            assert answer.status_code == 404, path
            if "veiled" not in path:  # what was asked is said again
                assert "veiled" not in answer.text
        assert service.http.get(service.url + "/devices", headers=lab).status_code == 200
        form = service.http.get(service.url + "/upload", headers=lab).text
        assert re.search(r'name="project" value="lab"[^>]* readonly', form)
