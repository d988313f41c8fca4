"""The pages: what people look at. Each is a view as the command line prints it, in a template; all work without script.

Every page stands in a module with ``register``; `GROUPS` names them.
"""

from fastapi import FastAPI

from profsvc.web.pages import assets, devices, explain, launch, login, run, runs, upload

GROUPS = (assets, login, runs, run, launch, devices, upload, explain)


def register(app: FastAPI) -> None:
    """Add the routes of all pages."""
    for group in GROUPS:
        group.register(app)
