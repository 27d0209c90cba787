"""Every PromQL expression of the dashboards, by what it gives.

k6's names come from `lab/analysis/queries.py`, recorded series from `prometheus/rules/`.
Expressions about some runs take the label matchers of those: `chosen()`
 for the runs of the variable `testid`.
"""
