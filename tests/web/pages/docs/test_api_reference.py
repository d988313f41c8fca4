"""The pages of the API: each path is asked from the browser, with a script and without."""

import re

from tests.web.pages.conftest import window


def test_a_path_is_asked_from_its_page(browser_page, shown):
    page = browser_page.page
    browser_page.open("/docs/api")
    page.fill("#filter", "v1_launches")
    page.fill("#filter", "/v1/kernels")
    rows = page.locator(".api tbody tr:visible")
    assert rows.count() == 1
    rows.locator("a").click()
    page.wait_for_url("**/docs/api/list_kernels")
    page.fill("[name=limit]", "2")
    page.fill("[name=order]", "-kernel_id")
    assert "limit=2&order=-kernel_id" in page.inner_text("[data-curl]")
    page.press("[name=limit]", "Enter")
    page.wait_for_selector(".answer-status.good")
    assert "200" in page.inner_text(".answer-status")
    assert page.inner_text(".answer-body").count("kernel_short") == 3  # its columns, and two rows
    page.select_option("[data-accept]", "text/csv")
    page.click("button.main")
    page.wait_for_selector(".answer-status:has-text('text/csv')")
    assert page.inner_text(".answer-body").startswith("kernel_id,")
    page.fill("[name=limit]", "many")
    page.click("button.main")
    page.wait_for_selector(".answer-status.bad")
    assert "whole number" in page.inner_text(".answer-body")
    browser_page.wrong[:] = [one for one in browser_page.wrong if "400" not in one]


def test_a_body_is_sent_from_its_page(browser_page):
    page = browser_page.page
    browser_page.open("/docs/api/ask_sql_in_body")
    page.fill("[data-body]", '{"q": "select 40 + 2 as answer"}')
    page.press("[data-body]", "Control+Enter")
    page.wait_for_selector(".answer-body:has-text('42')")


def test_without_script_a_form_leads_to_its_answer(chromium, shown):
    with window(chromium, shown.service.url, java_script_enabled=False) as found:
        page = found.page
        found.open("/docs/api/show_run")
        page.fill("[name=run]", "night 14")
        page.click("button.main")
        assert page.url.endswith("/v1/runs/night%2014")
        found.open("/docs/api/save_query")
        assert page.locator("button:visible:has-text('Send')").count() == 0
        assert "curl -X PUT" in page.inner_text("[data-curl]")


def test_every_operation_has_a_page(shown):
    names = [one["name"] for one in shown.service.ok("/v1")["paths"]]
    listed = re.findall(r'href="/docs/api/(\w+)"', shown.html("/docs/api"))
    assert sorted(names) == sorted(listed)
    for name in names:
        answer = shown.service.get(f"/docs/api/{name}")
        assert answer.status_code == 200, name
        assert "curl" in answer.text
    assert shown.service.get("/docs/api/nothing").status_code == 404
    assert shown.service.get("/docs/api/upload_file/ask").status_code == 404
    assert shown.service.get("/docs/api/show_run/ask").status_code == 400
