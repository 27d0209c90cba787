"""All PromQL expressions of the dashboards, by subject.

k6's metric names come from `lab/analysis/queries.py`, recorded series from `prometheus/rules/`.
Expressions about runs take label matchers: `variable_matcher()` for the runs of the variable
`testid`.
"""
