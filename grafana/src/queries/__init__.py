"""All PromQL expressions of the dashboards, by subject.

What the lab itself reads of k6 comes from `load_lab/metrics/queries.py`, recorded series from
`prometheus/rules/`.
Expressions about runs take label matchers: `variable_matcher()` for the runs of the variable
`testid`.
"""
