"""The loads of `lab demo`: what a newcomer should see in a few minutes."""

from collections.abc import Iterator

from lab.load.k6 import Load, new_testid


def demo_loads() -> Iterator[Load]:
    """A smoke test, then a short ramp that the naive, uncached stack can't follow.

    One at a time, since a name has the time at which its run begins.
    """
    yield Load("smoke", testid=new_testid("smoke"))
    yield Load("breakpoint", rate=4, duration="40s", testid=new_testid("breakpoint"))
