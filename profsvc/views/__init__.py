"""One function per question, which returns a plain dict. The command line, API and pages show the same dict."""

from profsvc.views.catalog import catalogue, devices, reader, readers, titles_and_hints
from profsvc.views.launches import LIMIT, launch, launches_of, why_no_result
from profsvc.views.runs import SUMMARY, advice_of_run, launch_page, run

__all__ = [
    "LIMIT", "SUMMARY", "advice_of_run", "catalogue", "devices", "launch", "launch_page", "launches_of", "reader",
    "readers", "run", "titles_and_hints", "why_no_result",
]  # fmt: skip
