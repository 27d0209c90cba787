"""`lab capacity`: the search of lab/analysis/capacity, with k6 as its load generator."""
