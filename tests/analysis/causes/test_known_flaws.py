"""Pairs of kernels with one known flaw each: the set that the attribution was designed on stays named."""

import pytest
from sqlalchemy import Engine

from tests.benchmarks import causes as benchmark


def test_flaws_of_the_first_set_are_named(first_flaws: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "stored", lambda _: benchmark.results(first_flaws, 1))
    score = benchmark.main(["first"])
    assert score["first"] >= 0.85 * score["launches"]
    assert score["second"] >= 0.95 * score["launches"]
    assert score["first"] > score["vendor first"]
    assert score["second"] > score["vendor second"]
    assert score["at limit"] >= 0.85 * score["unflawed"]
    assert score["error"] <= 0.23
    assert score["rank"] >= 0.75
    assert score["worst"] <= 1.89  # a factor of 6.6
