"""`lab compare`: two variants at once on the same CPUs."""
