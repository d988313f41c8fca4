"""Pairs of kernels with one known flaw each: the half that the attribution was written on stays named."""

from tests.benchmarks import causes as benchmark


def test_flaws_of_the_design_half_are_named() -> None:
    score = benchmark.main(["design"])
    assert score["first"] >= 0.85 * score["launches"]
    assert score["second"] >= 0.95 * score["launches"]
    assert score["first"] > score["vendor first"]
    assert score["second"] > score["vendor second"]
