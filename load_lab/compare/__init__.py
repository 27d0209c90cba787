"""`lab compare`: two variants under the same load, and the ratio of their costs."""
