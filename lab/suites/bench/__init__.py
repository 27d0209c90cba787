"""`lab bench`: the fast path against its own limits, as ratios of one run. docs/performance.md."""
