"""Acts of a user in a real browser: drop a file, ask what a number is, keys, touch, colours, without script."""

from profsvc import store
from tests.web.conftest import running
from tests.web.pages.browser.test_every_page import COLOURS
from tests.web.pages.conftest import window


def test_a_page_that_is_lent_again_remembers_nothing(chromium, shown):
    for _ in range(2):
        with window(chromium, shown.service.url) as found:
            found.open("/")
            kept = found.page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]")
            assert kept == ["", 0, 0]
            found.page.evaluate("document.cookie = 'a=1'; localStorage.a = sessionStorage.a = 1")


def test_a_dropped_file_is_stored_found_and_opened(chromium, site, tmp_path, profile):
    """From an empty store: drop a file, see what its reader says, find the run, open a launch, follow a number."""
    with running(site()) as service, window(chromium, service.url, viewport={"width": 1280, "height": 900}) as found:
        page = found.page
        found.open("/")
        assert "No runs yet" in page.inner_text("main")
        page.click("main a[href='/upload']")
        page.fill("#run", "dropped")
        page.fill("#tag", "branch=main")
        page.evaluate(
            """([name, text]) => {
              const data = new DataTransfer();
              data.items.add(new File([text], name));
              const options = { dataTransfer: data, bubbles: true, cancelable: true };
              for (const kind of ["dragenter", "dragover", "drop"])
                document.querySelector("[data-drop]").dispatchEvent(new DragEvent(kind, options));
            }""",
            ["raw.csv", profile.decode()],
        )
        page.wait_for_selector(".results .good")
        page.wait_for_selector(".results:has-text('lines:')")
        (tmp_path / "again.csv").write_bytes(profile)
        (tmp_path / "broken.txt").write_bytes(b"nothing that a tool prints")
        page.set_input_files("#files", [tmp_path / "again.csv", tmp_path / "broken.txt"])
        page.click("button.main")
        page.wait_for_selector(".results .bad")
        page.wait_for_selector(".results li:has-text('already stored')")
        texts = page.locator(".results li").all_inner_texts()
        assert len(texts) == 3
        assert "already stored as ncu-raw in dropped" in texts[1]
        assert "rejected" in texts[2]
        assert "broken.txt" in texts[2]
        page.keyboard.press("Escape")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("g")
        page.keyboard.press("r")
        page.wait_for_selector("#search")
        page.keyboard.press("/")
        page.keyboard.type("branch=main")
        page.keyboard.press("Enter")
        page.wait_for_url("**search=branch*")
        page.click("text=dropped")
        page.wait_for_url("**/runs/*")
        page.click(
            "table a >> nth=-1"
            if page.locator("#launches ~ .wide tbody a").count() == 0
            else "#launches ~ .wide tbody td:nth-child(2) a >> nth=0"
        )
        page.wait_for_url("**/launches/*")
        found.wrong[:] = [one for one in found.wrong if "422" not in one]


def test_a_number_is_explained_over_it_and_at_a_click(browser_page, shown):
    page = browser_page.page
    browser_page.open(shown.path("/runs/{run}/launches/{launch}"))
    number = page.locator("a.number[href*='/explain/divergence']:visible").last
    number.hover()
    page.wait_for_selector(".popover[role=tooltip]:has-text('Bombieri')")
    text = page.inner_text(".popover")
    assert "ncu_raw.csv.gz line 6" in text
    assert number.get_attribute("aria-describedby") == "explanation"
    page.mouse.move(5, 5)
    page.wait_for_selector(".popover", state="detached")
    number.click()
    page.wait_for_selector(".popover[role=dialog]:focus")
    page.keyboard.press("Escape")
    page.wait_for_selector(".popover", state="detached")
    assert page.evaluate("document.activeElement.getAttribute('href')") == number.get_attribute("href")
    page.keyboard.press("Tab")
    page.wait_for_selector(".popover[role=tooltip]")  # the keyboard sees the next number's


def test_a_number_under_a_dotted_title_is_explained_in_its_place(browser_page, shown):
    page = browser_page.page
    browser_page.open("/sql?q=select+value%2C+speedup+from+v1_criteria+limit+3")
    cell = page.locator("[data-explained] tbody td.n").nth(3)
    cell.hover()
    page.wait_for_selector(".popover[role=tooltip]:has-text('Amdahl')")
    assert cell.get_attribute("aria-describedby") == "explanation"
    page.mouse.move(5, 5)
    page.wait_for_selector(".popover", state="detached")
    cell.click()
    page.wait_for_selector(".popover[role=dialog]")
    page.keyboard.press("Escape")
    page.wait_for_selector(".popover", state="detached")
    title = page.locator("[data-explained] thead a").first
    title.focus()
    page.keyboard.press("Tab")
    page.wait_for_selector(".popover[role=tooltip]:has-text('Amdahl')")


def test_a_touch_opens_the_explanation_of_a_number(chromium, shown):
    phone = {"viewport": {"width": 400, "height": 800}, "has_touch": True, "is_mobile": True}
    with window(chromium, shown.service.url, **phone) as found:
        found.open(shown.path("/runs/{board}"))
        found.page.locator("a.number[href*='run.sensor_mean']").first.tap()
        found.page.wait_for_selector(".popover[role=dialog]:has-text('v1_samples')")
        box = found.page.locator(".popover").bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 400


def test_pages_are_used_by_keys(browser_page, shown):
    page = browser_page.page
    browser_page.open("/")
    page.keyboard.press("Tab")
    page.wait_for_selector(".skip:focus")
    page.keyboard.press("Enter")
    page.wait_for_selector("#main:focus")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")
    page.keyboard.press("/")
    page.wait_for_selector("#search:focus")
    page.keyboard.type("t?/")  # in a field, letters are letters
    assert page.input_value("#search") == "t?/"
    browser_page.open(shown.path("/runs/{run}?limit=5"))
    page.keyboard.press("n")
    page.wait_for_url("**after=5#launches")
    page.keyboard.press("p")
    page.wait_for_url(lambda url: "after" not in url)


def test_colours_are_remembered(browser_page, shown):
    page = browser_page.page
    back = "getComputedStyle(document.body).backgroundColor"
    browser_page.open("/")
    assert page.evaluate(back) == "rgb(255, 255, 255)"
    for chosen in COLOURS:
        with page.expect_response("**/theme"):
            page.keyboard.press("t")
        page.wait_for_selector(f"html[data-theme={chosen}]")
    assert page.evaluate(back) == "rgb(13, 17, 23)"
    browser_page.open(shown.path("/runs/{run}"))
    assert page.evaluate(back) == "rgb(13, 17, 23)"


def test_everything_works_without_script(chromium, site, tmp_path, profile):
    (tmp_path / "raw.csv").write_bytes(profile)
    (tmp_path / "broken.txt").write_bytes(b"nothing that a tool prints")
    with running(site()) as service, window(chromium, service.url, java_script_enabled=False) as found:
        page = found.page
        found.open("/upload?run=plain")
        page.set_input_files("#files", [tmp_path / "raw.csv", tmp_path / "broken.txt"])
        page.click("button.main")
        page.wait_for_selector(".results li >> nth=1")
        texts = page.locator(".results li").all_inner_texts()
        assert ("stored as ncu-raw in plain" in texts[0], "rejected" in texts[1]) == (True, True)
        page.click(".results a")
        page.wait_for_url("**/runs/*")
        page.click("thead a >> nth=0")
        page.wait_for_url("**/runs/*?*")
        page.click("a.number >> nth=0")
        page.wait_for_url("**/explain/**")
        page.click(".theme button")
        page.wait_for_selector("html[data-theme=light]")
        assert "/explain/" in page.url


def test_a_link_from_another_site_finds_who_is_logged_in(chromium, site, engine):
    """A strict cookie is kept back when a link elsewhere is followed, so the page asks for itself again."""
    token = store.create_token(engine, "person", ["read"])
    with running(site(is_public=True)) as service, window(chromium, service.url) as found:
        page = found.page
        found.open("/")
        page.fill("#token", token)
        page.click("button.main")
        page.wait_for_selector("text=No runs yet")
        page.goto("about:blank")
        page.set_content(f'<a href="{service.url}/devices">elsewhere</a>')
        page.click("a")
        page.wait_for_selector("text=Catalogue")
        page.click("text=Log out")
        page.wait_for_selector("#token")


def test_the_criteria_of_a_run_fit_their_column(chromium, shown):
    for width in (1100, 1200, 1280, 1366):
        with window(chromium, shown.service.url, viewport={"width": width, "height": 900}) as found:
            found.open(shown.path("/runs/{run}"))
            sizes = found.page.evaluate(
                "[...document.querySelectorAll('.middle .wide')].map(one => [one.scrollWidth, one.clientWidth])"
            )
            assert sizes
            assert all(needed <= there for needed, there in sizes), (width, sizes)
