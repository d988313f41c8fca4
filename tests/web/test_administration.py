"""Tokens, schedules, channels and storage: over HTTP, by the client and in the browser, for the scope admin alone."""

import io
import re

import pytest

from profsvc import store
from profsvc.client import Client
from profsvc.errors import NotFoundError, UsageError
from tests.web.conftest import running
from tests.web.pages.conftest import window


@pytest.fixture
def guarded(site, engine, monkeypatch, tmp_path):
    """A service that needs tokens, and one that may do everything."""
    (tmp_path / "out").mkdir()
    file = tmp_path / "channels.toml"
    file.write_text(f'[team]\nkind = "file"\nfolder = "{tmp_path / "out"}"\n')
    monkeypatch.setenv("PROFSVC_CHANNELS", str(file))
    token = store.create_token(engine, "boss", ["admin"])
    with running(site(is_public=True)) as service:
        yield service, token


def test_tokens_are_created_seen_and_revoked(guarded, engine):
    service, token = guarded
    with Client(service.url, token, retry_delays_s=()) as client:
        made = client.create_token("ci", ["upload"], project="lab", days=3)
        grant = store.find_grant(engine, made)
        assert (grant.scopes, grant.project) == (frozenset({"upload"}), "lab")
        rows = {row["name"]: row for row in client.tokens()}
        assert rows["ci"]["active"]
        assert rows["ci"]["last_used_at"] is not None
        assert made not in str(rows)
        assert client.revoke_token("ci")["revoked"]
        assert store.find_grant(engine, made) is None
        with pytest.raises(NotFoundError):
            client.revoke_token("ci")
        with pytest.raises(UsageError, match="scopes"):
            client.create_token("x", ["all"])


def test_schedules_are_added_paused_and_run(guarded):
    service, token = guarded
    with Client(service.url, token, retry_delays_s=()) as client:
        made = client.add_schedule("vacuum", "0 6 * * *", zone="Europe/Berlin")
        number = made["schedule_id"]
        assert len(made["next_times"]) == 3
        assert made["next_times"] == sorted(made["next_times"])
        assert client.change_schedule(number, "pause")["schedule"]["next_times"] == []
        assert client.change_schedule(number, "run")["slot"]["state"] == "done"
        assert client.change_schedule(number, "resume")["schedule"]["enabled"]
        client.change_schedule(number, "remove")
        assert client.schedules() == []
        with pytest.raises(UsageError, match="act='explode'"):
            client.change_schedule(number, "explode")
        with pytest.raises(NotFoundError):
            client.add_schedule("nightly", "0 6 * * *", arguments={"channel": "nobody"})


def test_channels_and_storage(guarded, tmp_path):
    service, token = guarded
    with Client(service.url, token, retry_delays_s=()) as client:
        assert [row["channel"] for row in client.channels()] == ["team"]
        assert client.test_channel("team")["delivered"]
        assert any((tmp_path / "out").iterdir())
        assert {"schema", "sqlite"} & {one["check"] for one in client.storage()["checks"]}


def test_others_see_no_settings(guarded, engine):
    service, _ = guarded
    reader = {"authorization": f"Bearer {store.create_token(engine, 'reader', ['read', 'upload', 'sql'])}"}
    for path in ("/settings", "/settings/storage", "/v1/tokens", "/v1/storage"):
        assert service.http.get(service.url + path, headers=reader).status_code == 403
    assert 'href="/settings"' not in service.http.get(f"{service.url}/", headers=reader).text


def test_a_token_is_revoked_two_clicks_from_the_runs(chromium, guarded, engine):
    service, token = guarded
    made = store.create_token(engine, "ci", ["read"])
    with window(chromium, service.url, viewport={"width": 1280, "height": 900}, java_script_enabled=False) as found:
        page = found.page
        found.open("/")
        page.fill("#token", token)
        page.click("button.main")
        page.click("text=Settings")
        page.click("tr:has-text('ci') button:has-text('Revoke')")
        page.wait_for_selector("tr:has-text('ci'):has-text('revoked')")
        assert store.find_grant(engine, made) is None
        page.fill("#name", "dashboard")
        page.check("input[name=scope-sql]")
        page.click("button:text-is('Create')")
        shown = re.search(r"psvc_[0-9a-f]{64}", page.inner_text("main"))[0]
        assert store.find_grant(engine, shown).scopes == {"upload", "read", "sql"}
        page.click("text=Schedules")
        page.select_option("#kind", "vacuum")
        page.fill("#cron", "0 6 * * *")
        page.click("button:text-is('Add')")
        page.click("button:has-text('Run now')")
        page.wait_for_selector(".success:has-text('done')")
        page.click("button:has-text('Pause')")
        page.wait_for_selector("td:has-text('paused')")
        page.click("text=Channels")
        page.click("button:has-text('Send a test message')")
        page.wait_for_selector(".success:has-text('delivered')")
        page.click("text=Storage")
        assert "schema" in page.inner_text("main")


def _named(engine, name):
    return store.select(engine, "v1_runs", name=name)


def test_a_run_is_renamed_tagged_deleted_and_restored(guarded, engine, profile):
    service, token = guarded
    with Client(service.url, token, retry_delays_s=()) as client:
        for name in ("one", "two"):
            client.submit(io.BytesIO(profile), file_name=f"{name}.csv", run=name, tag=["branch=main", "old=1"])
        said = client.change_run("one", name="first", tags={"branch": "dev", "old": None})
        assert (said["run"]["name"], said["run"]["tags"]) == ("first", {"branch": "dev"})
        assert sorted(said["changed"]) == ["name", "tag branch", "tag old"]
        with pytest.raises(UsageError, match="has a run named"):
            client.change_run("first", name="two")
        groups = {(one["project"], one["branch"]): one for one in client.run_groups()}
        assert groups["default", "dev"]["newest"] == "first"
        gone = client.delete_run("first")
        assert _named(engine, "first") == []
        for upload in gone["uploads"]:
            client.restore_upload(upload)
        (back,) = _named(engine, "first")
        assert back["run_id"] == gone["run_id"]


def test_a_run_is_changed_and_deleted_in_the_browser_with_undo(chromium, site, engine, profile):
    with running(site()) as service, window(chromium, service.url, java_script_enabled=False) as found:
        run = service.upload(profile, run="mine", tag="branch=main").json()["run_id"]
        page = found.page
        found.open(f"/runs/{run}")
        page.click("summary:has-text('Rename')")
        page.fill("#run-name", "yours")
        page.fill("#run-tags", "branch=dev\nnote=a=b")
        page.click("button:text-is('Save')")
        page.wait_for_selector("h1:text-is('yours')")
        (row,) = store.parse_json_columns("v1_runs", _named(engine, "yours"))
        assert row["tags"] == {"branch": "dev", "note": "a=b"}
        page.click("summary:has-text('Rename')")
        page.click("text=Delete the run")
        page.wait_for_selector("text=Run yours deleted")
        assert _named(engine, "yours") == []
        page.click("button:text-is('Undo')")
        page.wait_for_selector("h1:text-is('yours')")
        assert _named(engine, "yours")


def test_groups_have_a_curve(shown_groups):
    text, groups = shown_groups
    assert text.count('class="spark"') == sum(len([t for t in one["times"] if t is not None]) > 1 for one in groups)


@pytest.fixture
def shown_groups(site, profile):
    with running(site()) as service:
        for number in range(3):
            service.upload(profile + b"\n" * number, run=f"n{number}", tag="branch=main")
        answer = service.http.get(f"{service.url}/?by=branch", headers={"accept": "text/html"})
        yield answer.text, service.ok("/v1/groups")["groups"]
