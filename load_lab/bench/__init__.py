"""`lab bench`: the fast path against its limits, as ratios in one run. See docs/performance.md."""
