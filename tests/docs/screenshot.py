"""Take the picture of the README: ``python -m tests.docs.screenshot``. It needs Chromium."""

import shutil
import tempfile

from playwright.sync_api import sync_playwright

from profsvc import docs, pipeline, store
from profsvc.web.http.state import AppState
from tests.conftest import DEMO
from tests.web.conftest import running

SIZE = {"width": 1180, "height": 640}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = store.open_store(f"{folder}/store.sqlite")
        with DEMO.open("rb") as stream:
            pipeline.ingest(engine, stream, DEMO.name, store.RunInfo(name="h200", project="demo"))
        with running(AppState(engine, store.blob_store_of(engine))) as service, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
            page.goto(f"{service.url}/runs/1")
            page.screenshot(path=str(docs.FOLDER / "pictures" / "page.png"))
            browser.close()
        engine.dispose()


if __name__ == "__main__":
    main()
