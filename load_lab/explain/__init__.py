"""`lab explain`: what limited a stored run; with `--prove` by a change of the target."""
