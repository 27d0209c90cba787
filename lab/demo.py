"""The loads of `lab demo`: what a newcomer should see in a few minutes."""

from lab.k6 import Load, new_testid


def demo_loads() -> list[Load]:
    """A smoke test, then a short ramp that the naive, uncached stack can't follow."""
    return [
        Load("smoke", testid=new_testid("smoke")),
        Load("breakpoint", rate=5, duration="40s", testid=new_testid("breakpoint")),
    ]
