"""Which part of a target limits it, by what was seen of it under load. Pure functions."""
