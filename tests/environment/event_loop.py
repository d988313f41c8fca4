"""An event loop of a test's own: the browser of other tests keeps one in the main thread of the process."""

from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import anyio

Found = TypeVar("Found")


def run_async(work: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
    """Run a coroutine function in a thread of its own, and return what it returns."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, work).result()
