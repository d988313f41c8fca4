"""The HTML pages. Each renders a view, the same that the command line prints, and works without script.

Every page has a module with ``register``; `PAGE_MODULES` lists them.
"""

from fastapi import FastAPI

from profsvc.web.pages import devices, explain, login, models, sql, upload
from profsvc.web.pages.docs import api_reference, documentation
from profsvc.web.pages.launches import launch, metrics, source, timeline
from profsvc.web.pages.nightly import findings, history, renames, reports
from profsvc.web.pages.rendering import assets
from profsvc.web.pages.runs import compare, listing, power, run
from profsvc.web.pages.settings import administration, run_changes

PAGE_MODULES = (
    assets, login, listing, run, launch, metrics, timeline, source, power, compare, history, findings, renames, reports,
    devices, models, sql, upload, explain, api_reference, documentation, administration, run_changes,
)  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes of all pages."""
    for group in PAGE_MODULES:
        group.register(app)
