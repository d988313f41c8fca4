"""The pages: what people look at. Each is a view as the command line prints it, in a template; all work without script.

Every page stands in a module with ``register``; `GROUPS` names them.
"""

from fastapi import FastAPI

from profsvc.web.pages import (
    assets,
    compare,
    devices,
    explain,
    findings,
    history,
    launch,
    login,
    power,
    reports,
    run,
    runs,
    sql,
    upload,
)

GROUPS = (
    assets, login, runs, run, launch, power, compare, history, findings, reports, devices, sql, upload, explain,
)  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes of all pages."""
    for group in GROUPS:
        group.register(app)
