"""Scheduled jobs: rows of the store say what runs when; each slot runs once, however many schedulers there are."""

from profsvc.scheduler.jobs import KINDS, JobKind
from profsvc.scheduler.timer import Timer, add, pause, resume, run_now, running

__all__ = ["KINDS", "JobKind", "Timer", "add", "pause", "resume", "run_now", "running"]
