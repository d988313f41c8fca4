"""The nightly report: what changed in a night, which commits may have caused it, and the document made of it."""

from profsvc.pipeline.nightly.report import report_of_night, series_of

__all__ = ["report_of_night", "series_of"]
